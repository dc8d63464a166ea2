// How long the worker waits before it asks a management server again, on a clock turned by hand.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import type { BackoffOptions } from '../../../shared/backoff.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { limitResource, startScriptedAdsServer } from '../../support/scripted-ads-server.ts';
import { startXdsSource, type XdsSourceRun } from '../../support/xds-source-run.ts';

/** Checks that the next attempt comes after exactly this wait. */
async function assertWait(
  t: ExecutionContext,
  { clock, run, waitMs }: { clock: ManualClock; run: XdsSourceRun; waitMs: number },
): Promise<void> {
  const attempts = () => run.metric('ratelimit.xds.reconnects') ?? 0;
  const before = attempts();
  const failure = `failed at ${new Date(clock.wallMs()).toISOString()}`;
  await eventually('the connection is gone', () => run.source.describe().includes(failure));
  clock.advance(waitMs - 1);
  t.is(attempts(), before, `${waitMs} ms are not over`);
  clock.advance(1);
  t.is(attempts(), before + 1, `${waitMs} ms are over`);
}

async function losesStreams(t: ExecutionContext, backoff: BackoffOptions, waits: number[]) {
  const clock = createManualClock();
  const server = await startScriptedAdsServer(t);
  const run = await startXdsSource(t, { server: { url: server.url }, clock, backoff });
  for (const [index, waitMs] of waits.entries()) {
    const stream = await server.stream(index);
    await stream.request(0);
    stream.end();
    await assertWait(t, { clock, run, waitMs });
  }
  return { clock, server, run, streams: waits.length };
}

test('the waits begin with the initial one and grow by the factor to the longest', async (t) => {
  const backoff = { initialMs: 10_000, maxMs: 30_000, multiplier: 1.5, random: undefined };
  await losesStreams(t, backoff, [10_000, 15_000, 22_500, 30_000, 30_000]);
});

test('another factor grows by that one, and jitter spreads the waits', async (t) => {
  const backoff = { initialMs: 100, maxMs: 100_000, multiplier: 3, random: undefined };
  await losesStreams(t, backoff, [100, 300, 900]);
  await losesStreams(t, { ...backoff, random: () => 0.5 }, [200, 500, 1_400]);
});

test('rules that are accepted make the waits begin anew', async (t) => {
  const backoff = { initialMs: 1_000, maxMs: 60_000, multiplier: 2, random: undefined };
  const { clock, server, run, streams } = await losesStreams(t, backoff, [1_000, 2_000, 4_000]);
  const refused = await server.stream(streams);
  refused.send('1', 'a', [limitResource('r', 'd')]);
  await refused.request(1);
  refused.end();
  await assertWait(t, { clock, run, waitMs: 8_000 });
  const stream = await server.stream(streams + 1);
  stream.send('2', 'b', [limitResource('r', 'd', 1)]);
  await stream.request(1);
  stream.end();
  await assertWait(t, { clock, run, waitMs: 1_000 });
});

// Proof of migrating.md: `CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL` is the wait after an attempt to
// connect that failed
test('attempts that get no connection wait the interval for connecting each time', async (t) => {
  const clock = createManualClock();
  const url = `127.0.0.1:${await freePort()}`;
  const run = await startXdsSource(t, { server: { url }, clock, connectRetryMs: 3_000 });
  for (let attempt = 0; attempt < 4; attempt++) {
    await assertWait(t, { clock, run, waitMs: 3_000 });
  }
});

test('a server that accepts and says nothing is given up, and tried again', async (t) => {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket));
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  t.teardown(() => {
    mute.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = mute.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const clock = createManualClock();
  const run = await startXdsSource(t, {
    server: { url: `127.0.0.1:${port}` },
    clock,
    connectRetryMs: 3_000,
  });
  await eventually('a connection', () => sockets.length === 1);
  clock.advance(10_000);
  t.regex(run.source.describe(), /last attempt failed at .*: no connection within 10s/);
  clock.advance(3_000);
  await eventually('another connection', () => sockets.length === 2);
});
