// Tests a whole worker that gets its rules from a management server.

import test from 'ava';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { limitResource, startScriptedAdsServer } from '../../support/scripted-ads-server.ts';
import { spawnWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

function environment(url: string): Record<string, string> {
  return {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: url,
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '50ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '50ms',
    BACKEND_TYPE: 'memory',
  };
}

async function decide({ ports }: WorkerProcess, domain: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await answer.text();
  return answer.ok || answer.status === 429 ? JSON.parse(text).overallCode : text;
}

test('CONFIG_TYPE: it opens its ports with the first rules, follows each change, and reports where they come from', async (t) => {
  const server = await startScriptedAdsServer(t);
  const worker = await spawnWorkerProcess(t, { env: environment(server.url) });
  const stream = await server.stream(0);
  t.regex(await worker.page('/status'), /waiting for: a first good load of the rules/);
  t.false(await worker.isReady());

  stream.send('1', 'a', [limitResource('shop', 'shop', 0)]);
  t.is((await stream.request(1)).versionInfo, '1');
  await eventually('the ports are open', worker.isReady);
  t.is(await decide(worker, 'shop'), 'OVER_LIMIT');

  stream.send('2', 'b', [limitResource('shop', 'shop', 1_000), limitResource('mail', 'mail')]);
  const nack = await stream.request(2);
  t.is(nack.versionInfo, '1');
  t.regex(nack.errorDetail?.message ?? '', /^mail: error: .*invalid rate limit unit 'UNKNOWN'/);
  t.is(await decide(worker, 'shop'), 'OK');
  const status = await worker.page('/status');
  t.regex(status, /rules come from: management server localhost:\d+ as node "default", connected/);
  t.regex(status, /last version accepted: "1" at /);
  t.regex(status, /last refusal: version "2" at /);
  t.regex(status, /in force: 1 of 2 resources of version "2" from localhost:/);
  t.regex(await worker.page('/stats'), /ratelimit\.xds\.nacks: 1/);
  t.regex(await worker.page('/rlconfig'), /^shop\.k: unit=SECOND requests_per_unit=1000/);

  server.stop();
  await eventually('the loss is logged', () => /Lost the management server/.test(worker.output()));
  t.is(await decide(worker, 'shop'), 'OK');
});

// Proof of migrating.md: SIGTERM ends the wait for the first rules
test('a signal ends it at once while it waits for rules', async (t) => {
  const worker = await spawnWorkerProcess(t, { env: environment(`127.0.0.1:${await freePort()}`) });
  await eventually('the failure is logged', () => /Could not reach the man/.test(worker.output()));
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(60_000), 0);
});

test('FORCE_START_WITHOUT_INITIAL_CONFIG: it serves without rules when a start is forced', async (t) => {
  const env = environment(`127.0.0.1:${await freePort()}`);
  const worker = await spawnWorkerProcess(t, {
    env: { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
  });
  await eventually('the ports are open', worker.isReady);
  t.not(await decide(worker, 'shop'), 'OK');
});
