// A loopback proxy that delays answers, like a store in another rack. It is a separate process, so that it takes no CPU
// time from the service or the generator.
//   node delay-proxy.ts TARGET-PORT ROUND-TRIP-MS
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterPause, sharpenPauses } from '../../worker/fine-pause.ts';

interface Delayed {
  readonly dueMs: number;
  readonly to: Socket;
  readonly bytes: Buffer;
}

const [targetPort, roundTripMs] = process.argv.slice(2).map(Number);
/** How often it polls for requests while answers wait. */
const pauseMs = 0.1;
const waiting: Delayed[] = [];
let isPassing = false;

sharpenPauses();

/** All answers wait equally long, so they become due in the order of arrival. */
function passDue(): void {
  const nowMs = performance.now();
  let count = 0;
  for (; count < waiting.length && (waiting[count]?.dueMs ?? 0) <= nowMs; count++) {
    const next = waiting[count];
    if (next?.to.writable) next.to.write(next.bytes);
  }
  waiting.splice(0, count);
  const [first] = waiting;
  isPassing = first !== undefined;
  if (first !== undefined) afterPause(Math.min(first.dueMs - nowMs, pauseMs), passDue);
}

const server = createServer((client) => {
  const target = connect(targetPort ?? 0, '127.0.0.1');
  client.on('data', (chunk) => target.write(chunk));
  target.on('data', (bytes) => {
    waiting.push({ dueMs: performance.now() + (roundTripMs ?? 0), to: client, bytes });
    if (!isPassing) passDue();
  });
  for (const [socket, other] of [
    [client, target],
    [target, client],
  ] as const) {
    socket.setNoDelay(true);
    socket.on('error', () => other.destroy());
    socket.on('close', () => other.destroy());
  }
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
if (address !== null && typeof address !== 'string') process.send?.(address.port);
process.once('disconnect', () => process.exit());
