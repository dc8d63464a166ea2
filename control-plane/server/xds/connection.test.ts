import { once } from 'node:events';
import { connect, createServer, type ServerHttp2Session } from 'node:http2';
import test, { type ExecutionContext } from 'ava';
import { listenFor } from '../../../test/support/listen.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { Connection } from './connection.ts';
import { defaultLimits } from './limits.ts';
import { createPatientClock } from './patient-clock.ts';

async function openSession(t: ExecutionContext): Promise<ServerHttp2Session> {
  const server = createServer();
  const client = connect(`http://127.0.0.1:${await listenFor(t, server)}`);
  client.on('error', () => {});
  t.teardown(() => client.destroy());
  const [session] = (await once(server, 'session')) as [ServerHttp2Session];
  return session;
}

test('a connection that has ended, but has not reported it yet, is not pinged', async (t) => {
  const session = await openSession(t);
  const clock = createManualClock();
  let closed = 0;
  new Connection(session, { clock, limits: defaultLimits, onClose: () => closed++ });
  const end = once(session, 'close');
  session.destroy();
  clock.advance(defaultLimits.keepaliveMs + defaultLimits.keepaliveTimeoutMs);
  await end;
  t.is(closed, 1);
  t.is(clock.pending, 0);
});

test('a connection without calls is closed after a period', async (t) => {
  const session = await openSession(t);
  const clock = createManualClock();
  const deps = { clock, limits: defaultLimits, onClose: () => {} };
  const connection = new Connection(session, deps);
  clock.advance(defaultLimits.keepaliveMs - 1);
  t.false(session.closed);
  clock.advance(1);
  t.true(session.closed);
  clock.advance(defaultLimits.keepaliveTimeoutMs);
  if (!session.destroyed) await once(session, 'close');
  t.true(session.destroyed);
  t.false(connection.isBroken, 'it was ended here');
});

test('a connection on which no further ping can be sent is closed', async (t) => {
  const session = await openSession(t);
  const clock = createManualClock();
  new Connection(session, { clock, limits: defaultLimits, onClose: () => {} }).callOpened();
  // As many pings as node:http2 keeps outstanding.
  for (let sent = 0; sent < 10; sent++) session.ping(() => {});
  clock.advance(defaultLimits.keepaliveMs + defaultLimits.keepaliveTimeoutMs);
  t.true(session.destroyed);
});

test('a client is not closed for an answer that arrived while the process was stalled', async (t) => {
  const session = await openSession(t);
  const clock = createManualClock();
  const limits = { ...defaultLimits, keepaliveMs: 1_000 };
  const deps = { clock: createPatientClock(clock), limits, onClose: () => {} };
  new Connection(session, deps).callOpened();
  clock.advance(limits.keepaliveMs);
  clock.stall(limits.keepaliveTimeoutMs + 1_000);
  t.false(session.destroyed);
  clock.advance(limits.keepaliveTimeoutMs);
  t.true(session.destroyed);
});
