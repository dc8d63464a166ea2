// The server's end of the links, with workers that are streams of the test, some of which send false reports.
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { loadFleetLink } from '../../../shared/wire/fleet.ts';
import type {
  FromWorkerMessage,
  HelloMessage,
  ReportMessage,
  TotalsMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { callDiscovery, startAds } from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createFindFigures, toTrafficJson, toTrafficText } from '../admin/traffic-json.ts';
import { createFleet } from './fleet.ts';
import { TrafficHistory } from './traffic-history.ts';
import { toTotals } from './worker-figures.ts';

const method = loadFleetLink();
const hello: HelloMessage = {
  nodeId: 'w-1',
  instance: 'i-1',
  agreement: 'a',
  countsAlone: false,
  allowsReset: true,
  values: 2,
};

function toReport(given: Partial<TotalsMessage>, seconds = 5): ReportMessage {
  return {
    version: 'v1',
    totals: { ...toTotals(undefined), ...given },
    seconds,
    rules: [],
    otherRuleCount: 0,
    unmatched: [],
    store: { kind: 'redis', serversAway: 1, clockOffsetMs: -3 },
  };
}

async function setUp(t: ExecutionContext, clock: Clock = systemClock) {
  const log = createRecordedLog();
  const fleet = createFleet({ method, history: new TrafficHistory(clock), log, clock });
  const methods = new Map([[fleet.path, fleet.open]]);
  const ads = await startAds(t, { methods });
  t.teardown(() => fleet.stop());
  function connect(...messages: readonly FromWorkerMessage[]) {
    const stream = callDiscovery<FromWorkerMessage, object>(t, ads.port, method);
    for (const message of messages) stream.send(message);
    return stream;
  }
  return { fleet, log, connect, port: ads.port };
}

test('the figures are the rates between the last two reports, of all workers together', async (t) => {
  const { fleet, connect } = await setUp(t);
  const durations = [0, 90, 0, 9, 0, 1];
  const store = { kind: 'redis', serversAway: 0, clockOffsetMs: 0 };
  const quota = { streams: 2, buckets: 30, assignments: 10 };
  const one = connect({ hello }, { report: toReport({ decisions: 1_000 }) });
  connect(
    { hello: { ...hello, nodeId: 'w-2', instance: 'i-2' } },
    { report: { ...toReport({ decisions: 50 }), store, quota } },
  );
  await eventually('both report', () => fleet.list().filter(({ figures }) => figures).length === 2);
  t.like(toTrafficJson(fleet.list()), { workers: 2, decisionsPerSecond: 0, p99Ms: null });
  const totals = {
    decisions: 1_100,
    overLimit: 10,
    errors: 5,
    withoutStore: 30,
    durations,
    storeDurations: [0, 0, 99, 0, 1],
  };
  one.send({ report: { ...toReport(totals), quota: { streams: 1, buckets: 7, assignments: 2 } } });
  await eventually('a rate', () => toTrafficJson(fleet.list())?.decisionsPerSecond === 20);
  const traffic = toTrafficJson(fleet.list());
  t.deepEqual(traffic, {
    workers: 2,
    decisionsPerSecond: 20,
    overLimitPerSecond: 2,
    errorsPerSecond: 1,
    p99Ms: 0.5,
    p99AboveMs: null,
    withoutStorePerSecond: 6,
    workersWithoutStore: 1,
    storeCalls: { p99Ms: 0.25, p99AboveMs: null },
    quota: { streams: 3, buckets: 37, assignmentsPerSecond: 2.4 },
  });
  t.is(
    traffic && toTrafficText(traffic),
    '20 decisions/s, 2 over limit/s, 1 errors/s, p99 at most 0.5 ms, of calls of the store at most 0.25 ms (2 workers report); quota service: 3 streams, 37 buckets, 2.4 assignments/s',
  );
  const [{ address } = { address: '' }] = fleet.list();
  // Workers that report no instance.
  const find = createFindFigures(fleet.list(), []);
  const workerOf = (id: string, instance?: string) => ({
    node: { id, cluster: '', metadata: new Map() },
    instance,
    address,
  });
  t.like(find(workerOf('w-1')), {
    decisionsPerSecond: 20,
    version: 'v1',
    store: { serversAway: 1 },
  });
  t.is(find(workerOf('w-3')), null);
  t.like(fleet.counted().get('i-1'), { nodeId: 'w-1', version: 'v1' });
  t.like(fleet.counted().get('i-1')?.now, { decisions: 95, overLimit: 10, errors: 5 });
  t.like(fleet.counted().get('i-2'), { nodeId: 'w-2', now: { decisions: 0 } });
});

// Proof of SECURITY.md: cannot take its link, or its room in tables
test('a second link of a connected instance is refused by name, and the first one stays', async (t) => {
  const { fleet, log, connect } = await setUp(t);
  const first = connect({ hello }, { report: toReport({}) });
  await eventually('it reports', () => fleet.list()[0]?.figures !== undefined);
  const [{ address } = { address: '' }] = fleet.list();
  const other = { ...hello, nodeId: 'w-2' };
  const { code, details } = await connect({ hello: other }, { report: toReport({}) }).status();
  const text = `instance 'i-1' of worker 'w-1' is connected already, from ${address}`;
  t.deepEqual([code, details], [6, text]);
  t.regex(log.lines[0] ?? '', /^warning Fleet: the link of worker 'w-2' at .* was ended: instance/);
  t.deepEqual(
    fleet.list().map(({ hello, address }) => [hello.nodeId, address]),
    [['w-1', address]],
  );
  first.halfClose();
  t.is((await first.status()).code, 0);
  t.deepEqual(fleet.list(), []);
  t.is(toTrafficJson(fleet.list()), null);
  connect({ hello });
  await eventually('it has another link', () => fleet.list().length === 1);
});

test('each of two workers that share a node id counts for itself, also when one leaves', async (t) => {
  const { fleet, connect } = await setUp(t);
  const old = connect({ hello }, { report: toReport({ decisions: 1_000_000 }) });
  const young = connect({ hello: { ...hello, instance: 'i-2' } }, { report: toReport({}) });
  await eventually('both are counted', () => fleet.counted().size === 2);
  const decisionsOf = (instance: string) => fleet.counted().get(instance)?.now.decisions;
  old.send({ report: toReport({ decisions: 1_000_500, overLimit: 500 }) });
  young.send({ report: toReport({ decisions: 30 }) });
  await eventually('they have decided', () => decisionsOf('i-2') === 30);
  await eventually('they have decided', () => decisionsOf('i-1') === 500);
  const before = fleet.counted().get('i-2');
  old.close();
  await eventually('it has left', () => fleet.counted().size === 1);
  t.deepEqual(fleet.counted().get('i-2'), before);
  t.like(before, { nodeId: 'w-1', now: { overLimit: 0, errors: 0 } });
});

test('a worker that falls silent is not counted', async (t) => {
  const clock = createManualClock();
  const { fleet, connect } = await setUp(t, clock);
  connect({ hello });
  await eventually('it is there', () => fleet.list().length === 1);
  t.is(fleet.counted().size, 0);
  connect({ hello: { ...hello, instance: 'i-2' } }, { report: toReport({}) });
  await eventually('it is counted', () => fleet.counted().has('i-2'));
  clock.advance(20_000);
  t.true(fleet.counted().has('i-2'));
  clock.advance(1);
  t.is(fleet.counted().size, 0);
});

test("a worker's reports are bounded, and figures are numbers whatever they contain", async (t) => {
  const { fleet, connect } = await setUp(t);
  const absurd = { decisions: 2 ** 53, overLimit: 2 ** 60, durations: Array(1_000).fill(2 ** 53) };
  const liar = connect({ hello }, { report: toReport({}, Number.NaN) });
  liar.send({
    report: {
      ...toReport(absurd, -5),
      version: 'v'.repeat(100_000),
      store: { kind: 'x'.repeat(1_000), serversAway: 1, clockOffsetMs: Number.NaN },
    },
  });
  await eventually('it is read', () => (fleet.list()[0]?.figures?.decisionsPerSecond ?? 0) > 0);
  const figures = fleet.list()[0]?.figures;
  t.is(figures?.version.length, 128);
  t.is(figures?.store.kind.length, 128);
  t.is(figures?.store.clockOffsetMs, 0);
  t.is(figures?.durations.length, 14);
  t.true(Number.isFinite(figures?.overLimitPerSecond));
});

test('a link that begins without a hello, or with two, or with one that is too long, is ended, and that is logged', async (t) => {
  const { fleet, connect, log } = await setUp(t);
  const ends = await Promise.all(
    [
      connect({ report: toReport({}) }),
      connect({ hello }, { hello }),
      connect({ hello: { ...hello, instance: 'i'.repeat(2_000) } }),
      connect({ hello: { ...hello, instance: '' } }),
    ].map(async ({ status }) => (await status()).details),
  );
  t.deepEqual(ends, [
    'the first message has to be a hello',
    'a second hello',
    'the hello has too long a name',
    'the hello has no instance',
  ]);
  await eventually('none is left', () => fleet.list().length === 0);
  t.regex(log.lines[0] ?? '', /^warning Fleet: the link .*at .* was ended: /);
});

test('a worker that sends without end is cut off', async (t) => {
  const { connect } = await setUp(t);
  const stream = connect({ hello });
  for (let index = 0; index < 100; index++) stream.send({ report: toReport({}) });
  t.is((await stream.status()).details, 'too many messages on this link');
});

test('a stop sends the workers elsewhere', async (t) => {
  const { fleet, connect } = await setUp(t);
  const stream = connect({ hello });
  await eventually('it is there', () => fleet.list().length === 1);
  fleet.stop();
  t.is((await stream.status()).code, 14);
});
