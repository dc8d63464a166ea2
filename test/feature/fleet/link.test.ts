// Tests the link between workers and the control plane that configures them: whole workers, on an accelerated clock, so
// that reports follow each other quickly.
import test, { type ExecutionContext } from 'ava';
import { OpenLink } from '../../../control-plane/server/fleet/fleet-link.ts';
import { createResource, createSnapshot } from '../../../control-plane/server/snapshot/snapshot.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import { loadFleetLink } from '../../../shared/wire/fleet.ts';
import type { HelloMessage, ReportMessage } from '../../../shared/wire/fleet-messages.ts';
import { startAds } from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { pluck } from '../../support/pluck.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { limitResource, startScriptedAdsServer } from '../../support/scripted-ads-server.ts';
import { createCaller } from '../../support/worker-caller.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const stepMs = 5;
const times = 10;

/** A clock that runs ten times as fast while this process runs, and stops with it: on a busy machine, a report's
 * period, which its last report covers, does not end early. */
function startClock(t: ExecutionContext): Clock {
  const clock = createManualClock(systemClock.wallMs());
  const timer = setInterval(() => clock.advance(stepMs * times), stepMs);
  t.teardown(() => clearInterval(timer));
  return clock;
}

function environment(url: string, id = 'w-1'): Record<string, string> {
  return {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: url,
    CONFIG_GRPC_XDS_NODE_ID: id,
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '1s',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '1s',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '2s',
    BACKEND_TYPE: 'memory',
  };
}

/** A control plane that records what workers report; key `k` of domain `d` has `limit` hits. */
async function startListener(t: ExecutionContext, limit = 0) {
  const method = loadFleetLink();
  const hellos: HelloMessage[] = [];
  const reports: ReportMessage[] = [];
  const links: OpenLink[] = [];
  const resource = limitResource('d', 'd', limit);
  const ads = await startAds(t, {
    snapshot: createSnapshot([createResource('d', resource.value as Buffer)]),
    methods: new Map([
      [
        method.path,
        (call) => {
          const link = new OpenLink(
            {
              method,
              clock: systemClock,
              onHello: (hello) => void hellos.push(hello),
              onReport: (report) => void reports.push(report),
              onAnswer() {},
              onRefused: (reason) => t.fail(reason),
              onFinish() {},
              onClose() {},
            },
            call,
          );
          links.push(link);
          return link;
        },
      ],
    ]),
  });
  return { url: `localhost:${ads.port}`, hellos, reports, links };
}

test('a worker reports its decisions, by rule and by value, and again at its end', async (t) => {
  const { url, hellos, reports } = await startListener(t);
  const worker = await startWorker(t, { env: environment(url), clock: startClock(t) });
  await eventually('a first report', () => reports.length > 0);
  t.like(hellos[0], { nodeId: 'w-1', countsAlone: true, values: 2 });
  const { grpc } = await worker.started;
  const caller = createCaller(t, grpc.text);
  for (const value of ['hot', 'hot', 'cold'])
    t.is(await caller.decide('d', 'k', value), 'OVER_LIMIT');
  t.is(await caller.decide('d', 'other', 'x'), 'OK');
  t.is(await caller.decide('elsewhere', 'k', 'x'), 'OK');
  await eventually('all decisions are reported', () => reports.at(-1)?.totals?.decisions === 5);
  t.like(reports.at(-1)?.totals, { overLimit: 3, errors: 0, noMatch: 2 });
  t.deepEqual(
    reports.flatMap(({ failures }) => failures?.domains ?? []),
    [
      { domain: 'd', errors: 0, noMatch: 1 },
      { domain: 'elsewhere', errors: 0, noMatch: 1 },
    ],
  );
  const rules = reports.flatMap((report) => report.rules);
  t.is(
    rules.reduce((sum, { hits }) => sum + hits, 0),
    3,
  );
  t.true(rules.every(({ rule }) => rule === 'd.k'));
  t.like(reports.at(-1)?.limited?.values[0], {
    domain: 'd',
    rule: 'd.k',
    entries: [{ key: 'k', value: 'hot' }],
    count: 2,
    error: 0,
  });
  t.like(reports.at(-1)?.store, { kind: 'memory', serversAway: 0 });
  const unmatched = reports.flatMap((report) => report.unmatched);
  t.deepEqual(pluck(unmatched, 'domain'), ['d', 'elsewhere']);
  t.regex(
    await worker.page('/status'),
    /link to the control plane: connected to localhost:\d+, last report at/,
  );
});

test('a worker reports what it answers without its store', async (t) => {
  const { url, reports } = await startListener(t, 1);
  const { BACKEND_TYPE: _, ...xds } = environment(url);
  const store = { KVSTORE_URL: `127.0.0.1:${await freePort()}`, KVSTORE_FAILURE_MODE: 'allow' };
  const worker = await startWorker(t, { env: { ...xds, ...store }, clock: startClock(t) });
  const { grpc } = await worker.started;
  const caller = createCaller(t, grpc.text);
  t.is(await caller.decide('d', 'k', 'x'), 'OK');
  await eventually('the figures are reported', () => reports.at(-1)?.totals?.withoutStore === 1);
  t.like(reports.at(-1)?.totals, { decisions: 1, errors: 0 });
  t.like(reports.at(-1)?.store, { kind: 'redis', serversAway: 1 });
});

test('a worker reports the domain of requests that fail', async (t) => {
  const { url, reports } = await startListener(t, 1);
  const { BACKEND_TYPE: _, ...xds } = environment(url);
  const redis = await startRedisServer(t);
  const env = { ...xds, KVSTORE_URL: redis.url };
  const worker = await startWorker(t, { env, clock: startClock(t) });
  const { grpc } = await worker.started;
  const caller = createCaller(t, grpc.text);
  await redis.kill();
  t.regex(await caller.decide('d', 'k', 'x'), /^failed: /);
  await eventually('the figures are reported', () => reports.at(-1)?.totals?.errors === 1);
  t.deepEqual(
    reports.flatMap(({ failures }) => failures?.domains ?? []),
    [{ domain: 'd', errors: 1, noMatch: 0 }],
  );
});

test('a worker reports how long the calls of its store take', async (t) => {
  const { url, reports } = await startListener(t, 1);
  const redis = await startRedisServer(t);
  const { BACKEND_TYPE: _, ...xds } = environment(url);
  const env = { ...xds, KVSTORE_URL: redis.url };
  const worker = await startWorker(t, { env, clock: startClock(t) });
  const { grpc } = await worker.started;
  const caller = createCaller(t, grpc.text);
  t.is(await caller.decide('d', 'k', 'x'), 'OK');
  const calls = () => reports.at(-1)?.totals?.storeDurations.reduce((sum, count) => sum + count, 0);
  await eventually('the figures are reported', () => (calls() ?? 0) > 0);
  t.regex(await worker.page('/status'), /^the store's time: \d+ calls in the last .* on average/m);
});

test('a broken link costs no decision, and what is counted meanwhile is reported on the next link', async (t) => {
  const { url, hellos, reports, links } = await startListener(t);
  const worker = await startWorker(t, { env: environment(url), clock: startClock(t) });
  const caller = createCaller(t, (await worker.started).grpc.text);
  const refuse = async () => t.is(await caller.decide('d', 'k', 'hot'), 'OVER_LIMIT');
  await refuse();
  await eventually('the figures are reported', () => reports.at(-1)?.totals?.decisions === 1);
  for (let round = 1; round <= 3; round++) {
    links.at(-1)?.finish(grpcStatus.unavailable, 'the control plane is stopping');
    await refuse();
    await eventually('there is another link', () => hellos.length === round + 1);
    await refuse();
  }
  await eventually('all decisions are reported', () => reports.at(-1)?.totals?.decisions === 7);
  t.is(reports.at(-1)?.totals?.overLimit, 7);
  t.is(new Set(hellos.map(({ instance }) => instance)).size, 1);
  // The last report of a period covers all of it.
  const periods = new Map(
    reports.map(({ limited }) => [limited?.periodStart, limited?.values[0]?.count ?? 0]),
  );
  t.is(
    [...periods.values()].reduce((sum, count) => sum + count, 0),
    7,
  );
});

test('without CONFIG_FLEET_LINK nothing is reported', async (t) => {
  const { url, hellos } = await startListener(t);
  const env = { ...environment(url), CONFIG_FLEET_LINK: 'false' };
  const without = await startWorker(t, { env, clock: startClock(t) });
  await startWorker(t, { env: environment(url, 'w-2'), clock: startClock(t) });
  await eventually('the other one has a link', () => hellos.length > 0);
  t.deepEqual(pluck(hellos, 'nodeId'), ['w-2']);
  t.notRegex(await without.page('/status'), /link to the control plane/);
});

test('CONFIG_FLEET_LINK_VALUES: values are reported in clear text, as hashes or not at all', async (t) => {
  const seen: unknown[] = [];
  for (const values of ['plain', 'hashed', 'none']) {
    const { url, hellos, reports } = await startListener(t);
    const env = { ...environment(url), CONFIG_FLEET_LINK_VALUES: values };
    const worker = await startWorker(t, { env, clock: startClock(t) });
    t.is((await worker.decide('k=secret')).status, 429);
    await worker.decide('other=secret');
    await eventually('the figures are reported', () => reports.at(-1)?.totals?.noMatch === 1);
    t.is(reports.at(-1)?.totals?.overLimit, 1);
    const entries = [
      ...(reports.at(-1)?.limited?.values.flatMap((each) => each.entries) ?? []),
      ...reports.flatMap(({ unmatched }) => unmatched.flatMap((each) => each.entries)),
    ];
    seen.push([hellos[0]?.values, entries.map(({ value }) => value)]);
  }
  const hash = '2bb80d537b1da3e3';
  t.deepEqual(seen, [
    [2, ['secret', 'secret']],
    [1, [hash, hash]],
    [0, []],
  ]);
});

test('a management server of another make is logged once, and delivers rules as before', async (t) => {
  const server = await startScriptedAdsServer(t);
  const starting = startWorker(t, { env: environment(server.url), clock: startClock(t) });
  const stream = await server.stream(0);
  stream.send('1', 'a', [limitResource('d', 'd', 0)]);
  const worker = await starting;
  const isReported = (line: string) => line.includes('rejects reports from this worker');
  await eventually('the failure is logged', () => worker.log.lines.some(isReported));
  t.is(worker.log.lines.filter(isReported).length, 1);
  t.true(worker.log.lines.find(isReported)?.startsWith('info '));
  t.is((await worker.decide('k=a')).status, 429);
});
