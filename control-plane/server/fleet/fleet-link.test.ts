// The cost of one link for the server, with workers that send bytes of their own or read nothing.
import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { loadFleetLink } from '../../../shared/wire/fleet.ts';
import type { FromWorkerMessage, ReportMessage } from '../../../shared/wire/fleet-messages.ts';
import { startAds } from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { frame } from '../../../test/support/raw-discovery.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createFleet } from './fleet.ts';
import { TrafficHistory } from './traffic-history.ts';

const method = loadFleetLink();
const toBytes = (message: FromWorkerMessage) => frame(method.requestSerialize(message));
const hello = toBytes({
  hello: {
    nodeId: 'w\u001b[31m',
    instance: 'i',
    agreement: 'a',
    countsAlone: true,
    allowsReset: true,
    values: 2,
  },
});
const awaiting = toBytes({
  hello: {
    ...{ nodeId: 'w', instance: 'i2', agreement: 'a', countsAlone: true, allowsReset: true },
    ...{ values: 2, awaitsAnswers: true },
  },
});
const report: ReportMessage = {
  version: 'v1',
  seconds: 5,
  rules: [],
  otherRuleCount: 0,
  unmatched: [],
};

async function setUp(t: ExecutionContext, clock: Clock = systemClock) {
  const log = createRecordedLog();
  const fleet = createFleet({ method, history: new TrafficHistory(clock), log, clock });
  const ads = await startAds(t, { methods: new Map([[fleet.path, fleet.open]]) });
  t.teardown(async () => {
    fleet.stop();
  });
  /** A link that sends these bytes, and reads nothing until the test makes it read. */
  async function open(...messages: readonly Buffer[]): Promise<ClientHttp2Stream> {
    const session = connect(`http://127.0.0.1:${ads.port}`);
    session.on('error', () => {});
    t.teardown(() => session.destroy());
    await once(session, 'remoteSettings');
    const stream = session.request({
      ':method': 'POST',
      ':path': fleet.path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    for (const message of messages) stream.write(message);
    return stream;
  }
  async function endOf(stream: ClientHttp2Stream): Promise<string> {
    const trailers = once(stream, 'trailers');
    stream.resume();
    const [{ 'grpc-status': status, 'grpc-message': text = '' }] = await trailers;
    return `${status} ${decodeURIComponent(text)}`;
  }
  return { fleet, log, open, endOf };
}

test('bytes that are not a message, or too many of them, end the link', async (t) => {
  const { fleet, log, open, endOf } = await setUp(t);
  const malformed = await endOf(await open(hello, frame(Buffer.from([0x12, 0x7f, 1]))));
  t.regex(malformed, /^3 malformed message: /);
  const announced = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
  const tooLarge = 'received message larger than max (4294967295 vs. 4194304)';
  t.is(await endOf(await open(hello, announced)), `8 ${tooLarge}`);
  await eventually('none is left', () => fleet.list().length === 0);
  t.regex(
    log.lines[0] ?? '',
    /^warning Fleet: the link of worker 'w\\u\{1b\}\[31m' at .* was ended: malformed message/,
  );
});

test('large messages count as several', async (t) => {
  const { open, endOf } = await setUp(t, createManualClock());
  const version = 'v'.repeat(2 * 1024 * 1024);
  const large = toBytes({ report: { ...report, version } });
  t.is(await endOf(await open(hello, large, large)), '8 too many messages on this link');
});

test('a link on which nothing comes is ended', async (t) => {
  const clock = createManualClock();
  const { open, endOf } = await setUp(t, clock);
  const stream = await open();
  await once(stream, 'response');
  clock.advance(30_000);
  t.is(await endOf(stream), '3 no message arrived on this stream');
});

test('a worker that reads nothing is asked so many times, and then its link is ended', async (t) => {
  const clock = createManualClock();
  const { fleet, log, open } = await setUp(t, clock);
  const stream = await open(hello, toBytes({ report }));
  await eventually('it reports', () => fleet.list()[0]?.figures !== undefined);
  const descriptors = Array.from({ length: 20 }, () => [{ key: 'k', value: 'v'.repeat(2_048) }]);
  const question = { domain: 'd', descriptors, reset: false, worker: undefined };
  const asking = Array.from({ length: 36 }, () => fleet.askCounters(question));
  await eventually('the link is ended', () => fleet.list().length === 0 && stream.closed);
  t.regex(log.lines[0] ?? '', /was ended: the worker does not read its messages$/);
  clock.advance(1_500);
  for (const { answers } of await Promise.all(asking))
    t.is(answers[0]?.problem, 'no answer within 1.5s');
});

test('a bounded part of a report of 10,000 domains is kept', async (t) => {
  const { fleet, open } = await setUp(t);
  const domains = Array.from({ length: 10_000 }, (_, index) => `domain-${index}\u0000\u001b[2J`);
  const entries = [{ key: 'k', value: 'v' }];
  const rules = domains.map((rule) => ({ rule, hits: 1, overLimit: 1, nearLimit: 1 }));
  const values = domains.map((domain) => ({ domain, rule: domain, entries, count: 1, error: 0 }));
  const limited = { periodStart: 1, seconds: 5, values, unlistedAtMost: 0 };
  const unmatched = domains.map((domain) => ({ domain, entries }));
  const flood = toBytes({ report: { ...report, rules, limited, unmatched } });
  const stream = await open(hello, flood);
  await eventually('it is read', () => fleet.list()[0]?.figures !== undefined);
  t.is(fleet.rules().length, 2_000);
  t.is((await fleet.limited({}, 20_000)).values.length, 100);
  t.is(fleet.unmatched().length, 20);
  stream.close();
});

test('a control plane receives failures by domain from a later worker, and an earlier control plane ignores them', (t) => {
  const failures = { domains: [{ domain: 'shop', errors: 1, noMatch: 2 }] };
  const newer = method.requestSerialize({ report: { ...report, failures } });
  t.deepEqual(method.requestDeserialize(newer).report?.failures, failures);
  const older = method.requestSerialize({ report });
  t.is(method.requestDeserialize(older).report?.failures, null);
  // `failures` is field 10, with its length; here it has a field number that this version does not define.
  const unknown = Buffer.from(newer);
  const at = unknown.lastIndexOf(Buffer.from([(10 << 3) | 2]));
  unknown[at] = (15 << 3) | 2;
  t.deepEqual(method.requestDeserialize(unknown).report, method.requestDeserialize(older).report);
});

// Proof of SECURITY.md: cannot take its link, or its room in tables
test('a link that fills the tables takes nothing from the links beside it', async (t) => {
  const { fleet, open } = await setUp(t);
  const helloOf = (instance: string) =>
    toBytes({
      hello: {
        nodeId: instance,
        instance,
        agreement: 'a',
        countsAlone: true,
        allowsReset: true,
        values: 2,
      },
    });
  const reportOf = (names: readonly string[]) => {
    const rules = names.map((rule) => ({ rule, hits: 10, overLimit: 0, nearLimit: 0 }));
    const unmatched = names
      .slice(0, 20)
      .map((value) => ({ domain: 'd', entries: [{ key: 'k', value }] }));
    return toBytes({ report: { ...report, rules, unmatched } });
  };
  const early = await open(helloOf('early'), reportOf(['early']));
  await eventually('it reports', () => fleet.rules().length === 1);
  const floods = Array.from({ length: 13 }, (_, batch) =>
    reportOf(Array.from({ length: 2_000 }, (_, index) => `flood.${batch}.${index}`)),
  );
  const flooding = await open(helloOf('flooding'), ...floods);
  await eventually('the tables are full', () => fleet.rules().length === 20_000);
  await eventually('the last report is read', () =>
    fleet.unmatched().some(({ entries }) => entries[0]?.value === 'flood.12.19'),
  );
  const late = await open(helloOf('late'), reportOf(['late']));
  await eventually(
    'the late one reports',
    () => fleet.list().filter(({ figures }) => figures !== undefined).length === 3,
  );
  const names = new Set(fleet.rules().map(({ rule }) => rule));
  const shown = fleet.unmatched().map(({ entries }) => entries[0]?.value);
  const isThere = (name: string) => ({
    rule: names.has(name),
    sample: shown.slice(0, 50).includes(name),
  });
  t.deepEqual(
    { early: isThere('early'), late: isThere('late') },
    { early: { rule: true, sample: true }, late: { rule: true, sample: true } },
  );
  t.is(names.size, 20_000);
  t.is(shown.length, 200);
  for (const stream of [early, flooding, late]) stream.close();
});

test('reports of a worker that awaits answers are answered', async (t) => {
  const { open } = await setUp(t);
  const stream = await open(awaiting, toBytes({ report }));
  const [answer] = await once(stream, 'data');
  t.deepEqual(answer, Buffer.alloc(5), 'a frame with an empty message');
});
