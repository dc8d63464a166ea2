// Tests `top` and `counters` of a control plane with peers: real admin APIs and real links, with workers simulated by
// streams of the test.
import { createServer, type RequestListener, request } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createFleet, type Fleet } from '../../../control-plane/server/fleet/fleet.ts';
import { TrafficHistory } from '../../../control-plane/server/fleet/traffic-history.ts';
import type { PeerSource } from '../../../control-plane/server/record/peers/peer-list.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { loadFleetLink } from '../../../shared/wire/fleet.ts';
import type {
  CounterMessage,
  FromWorkerMessage,
  ToWorkerMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { callDiscovery, startAds } from '../../support/ads-fixture.ts';
import { runInProcess } from '../../support/command-run.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { listenFor } from '../../support/listen.ts';
import { createRecordedLog } from '../../support/recorded-log.ts';

const method = loadFleetLink();
const [reader, writer] = ['r'.repeat(32), 'w'.repeat(32)];
const rulesText =
  'domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]\n';
const peer = (url: string): PeerSource => ({ kind: 'url', url: new URL(url) });

/** With this slower clock, late answers of a busy machine are in time. */
const slowly = 20;
const slowClock: Clock = {
  wallMs: () => systemClock.wallMs() / slowly,
  monotonicMs: () => systemClock.monotonicMs() / slowly,
  after: (ms, task) => systemClock.after(ms * slowly, task),
};

interface GivenWorker {
  readonly id: string;
  readonly countsAlone?: boolean;
  /** Values that it limits, and how often. */
  readonly limited?: Readonly<Record<string, number>>;
  readonly used?: number;
  /** Whether it falsely reports a reset. */
  readonly lies?: boolean;
}

function toReport(limited: Readonly<Record<string, number>>): FromWorkerMessage {
  const values = Object.entries(limited).map(([value, count]) => ({
    domain: 'd',
    rule: 'd.k',
    entries: [{ key: 'k', value }],
    count,
    error: 0,
  }));
  return {
    report: {
      version: 'v1',
      seconds: 5,
      rules: [{ rule: 'd.k', hits: 50, overLimit: 25, nearLimit: 0 }],
      otherRuleCount: 0,
      limited: { periodStart: 1, seconds: 60, values, unlistedAtMost: 0 },
      unmatched: [],
    },
  };
}

/** A control plane whose workers answer each query, and the queries that they received. */
async function startPlane(
  t: ExecutionContext,
  workers: readonly GivenWorker[],
  peers: readonly PeerSource[] = [],
  { port = 0 } = {},
) {
  const linked = createFleet({
    method,
    history: new TrafficHistory(slowClock),
    log: createRecordedLog(),
    clock: slowClock,
  });
  const fleet: Fleet = {
    ...linked,
    // As with a thousand workers.
    async limited(...asked) {
      await setImmediate();
      return linked.limited(...asked);
    },
  };
  const ads = await startAds(t, { methods: new Map([[fleet.path, fleet.open]]) });
  t.teardown(() => fleet.stop());
  const asked: string[] = [];
  /** Workers that count together and report truthfully. */
  const store = { used: workers.find(({ countsAlone }) => !countsAlone)?.used ?? 0 };
  for (const { id, countsAlone = false, limited = {}, used = 0, lies = false } of workers) {
    const stream = callDiscovery<FromWorkerMessage, ToWorkerMessage>(t, ads.port, method);
    const instance = `${id}-instance`;
    const hello = { nodeId: id, instance, agreement: 'a', countsAlone, allowsReset: true };
    stream.send({ hello: { ...hello, values: 2 } });
    stream.send(toReport(limited));
    // The order of arrival decides which of the workers that count together are asked.
    await eventually('it has a link', () => fleet.list().at(-1)?.hello.nodeId === id);
    const answer = async (): Promise<void> => {
      const { counters: question } = await stream.next();
      asked.push(`${id} ${question == null ? 'forget' : question.reset ? 'reset' : 'get'}`);
      if (question != null) {
        if (question.reset && !lies) store.used = 0;
        const reported = countsAlone || lies ? used : store.used;
        const counter: CounterMessage = {
          descriptor: 0,
          problem: '',
          rule: 'd.k',
          used: question.reset ? 0 : reported,
          limit: 9,
          window: 'day',
          secondsUntilReset: 60,
        };
        stream.send({ counters: { id: question.id, problem: '', counters: [counter] } });
      }
      return answer();
    };
    // Until the stream ends.
    answer().catch(() => {});
  }
  await eventually(
    'they report',
    () => fleet.list().filter(({ figures }) => figures).length === workers.length,
  );
  const api = await startAdminApi(t, {
    files: { 'd.yaml': rulesText },
    tokens: `ann read ${reader}\nbob write ${writer}\n`,
    fleet,
    peers,
    // All will answer: the limit only guards against hanging.
    peerAnswerMs: 60_000,
    port,
  });
  const url = `http://127.0.0.1:${api.port}`;
  const run = (...words: string[]) =>
    runInProcess([...words, '--admin-url', url], { environment: { RATELANE_ADMIN_TOKEN: writer } });
  const counters = (action: string, ...more: string[]) =>
    run('counters', action, '--domain', 'd', '--descriptor', 'k=ada', ...more);
  return { url, log: api.log, asked, run, counters };
}

test('top is the sum over all control planes, including values that are small on each', async (t) => {
  const many = (name: string) =>
    Object.fromEntries(Array.from({ length: 45 }, (_, index) => [`${name}-${index}`, 100]));
  const b = await startPlane(t, [{ id: 'b', limited: { ...many('b'), everywhere: 60 } }]);
  const a = await startPlane(
    t,
    [{ id: 'a', limited: { ...many('a'), everywhere: 60 } }],
    [peer(b.url)],
  );
  const { code, out } = await a.run('top', '--limit', '1');
  t.is(code, 0, out);
  const [, first, others] = out.split('\n');
  t.regex(first ?? '', /^120 +.* d +\(k=everywhere\)$/);
  t.is(others, 'any other value: 100 times at most');
  t.regex(out, /\n10 +0 +20 +d\.k\n|\n[\d.]+ +0 +[\d.]+ +d\.k\n$/);
});

test('a reset reaches the workers of all control planes, and each of them logs it', async (t) => {
  const b = await startPlane(t, [{ id: 'b-1' }, { id: 'b-2' }]);
  const a = await startPlane(t, [{ id: 'a' }], [peer(b.url)]);
  const { code, err } = await a.counters('reset', '--reason', 'a mistake');
  t.is(code, 0, err);
  t.deepEqual(a.asked, ['a get', 'a reset', 'a get']);
  const ofPeer = ['b-2 get', 'b-1 reset', 'b-2 forget', 'b-2 get'];
  t.deepEqual(b.asked, ofPeer);
  for (const { log } of [a, b]) {
    const lines = log.lines.filter((line) => line.includes('audit: reset counters'));
    t.is(lines.length, 1);
    t.regex(lines[0] ?? '', /of \(k=ada\) of domain d: a mistake: done$/);
  }
  const refused = await fetch(`${a.url}/resets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${reader}`, 'content-type': 'application/json' },
    body: JSON.stringify({ domain: 'd', descriptors: [[{ key: 'k', value: 'ada' }]], reason: 'x' }),
  });
  t.is(refused.status, 403);
  t.deepEqual(b.asked, ofPeer);
});

async function startPeer(t: ExecutionContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  return `http://127.0.0.1:${await listenFor(t, server)}`;
}

/** What `top` and `counters get` report about peers without an answer; the answers of the others are shown. */
async function readComplaints(
  { run, counters }: Awaited<ReturnType<typeof startPlane>>,
  t: ExecutionContext,
) {
  const [top, shown] = await Promise.all([run('top'), counters('get')]);
  t.regex(top.out, /^LIMITED .*\n7 .*\(k=ada\)\n/);
  t.is(top.code, 3);
  t.regex(shown.out, /\n3 +9 /);
  t.is(shown.code, 1);
  const read = (text: string, word: string) =>
    text
      .split('\n')
      .map((line) => line.replace(`${word}: `, '').replace(/\(.*: (connect).*\)/, '($1)'));
  const complaints = read(top.err, 'warning');
  t.deepEqual(read(shown.err, 'error'), complaints);
  return complaints;
}

test('a peer that is unreachable or lies is named, and the others are shown', async (t) => {
  const lying = await startPeer(t, (_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end('{"answers":[{}],"values":"all"}');
  });
  const gone = `http://127.0.0.1:${await freePort()}`;
  const a = await startPlane(
    t,
    [{ id: 'a', used: 3, limited: { ada: 7 } }],
    [lying, gone].map(peer),
  );
  t.deepEqual(await readComplaints(a, t), [
    `peer ${lying} does not answer (its answer is from another version)`,
    `peer ${gone} does not answer (connect)`,
    '',
  ]);
});

/** A proxy to a control plane; requests for which `isLost` is true get no answer. */
function startWay(t: ExecutionContext, to: string, isLost: (path: string) => boolean) {
  return startPeer(t, (incoming, response) => {
    const { method, headers, url = '' } = incoming;
    if (isLost(url)) return void incoming.destroy();
    const passed = request(`${to}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(passed);
  });
}

test('a peer that returned no counters but answers by now is a failure, like one that is lost', async (t) => {
  const other = await startPlane(t, []);
  const busy = await startPlane(t, [{ id: 'b', used: 2 }]);
  let isLost = false;
  const lostWay = await startWay(t, other.url, () => isLost);
  const busyWay = await startWay(t, busy.url, (path) => isLost && !path.startsWith('/status'));
  const a = await startPlane(t, [{ id: 'a', used: 3 }], [lostWay, busyWay].map(peer));
  await a.run('status');
  isLost = true;
  const { code, err } = await a.counters('get');
  t.regex(err, new RegExp(`error: peer ${busyWay} does not answer`));
  t.is(code, 1);
});

test('a lost peer is named, and is not a failure if its workers are known to be elsewhere', async (t) => {
  const other = await startPlane(t, []);
  let isLost = false;
  const way = await startWay(t, other.url, () => isLost);
  const a = await startPlane(t, [{ id: 'a', used: 3 }], [peer(way)]);
  t.is((await a.counters('get')).code, 0);
  await a.run('status');
  isLost = true;
  const { code, out, err } = await a.counters('get');
  t.regex(out, /\n3 +9 /);
  t.regex(err, /^warning: peer http:\S+ does not answer \(.*\); it had no workers; .*\n$/);
  t.is(code, 0);
  const { code: ofReset } = await a.counters('reset', '--reason', 'x');
  t.is(ofReset, 1, 'what is not known to be reset is not done');
});

test('a control plane among its own peers counts itself once, however long its answer takes', async (t) => {
  // An unhandled rejection would end the process.
  const onUnhandled = (error: unknown) => t.fail(`${error}`);
  process.on('unhandledRejection', onUnhandled);
  t.teardown(() => void process.off('unhandledRejection', onUnhandled));
  const port = await freePort();
  const a = await startPlane(
    t,
    [{ id: 'a', limited: { ada: 7 } }],
    [{ kind: 'dns', host: '127.0.0.1', port }],
    { port },
  );
  const { code, out, err } = await a.run('top', '--limit', '1');
  t.is(code, 0, err);
  t.regex(out, /\n7 /);
  t.is((await a.counters('reset', '--reason', 'x')).code, 0);
  t.is(a.log.lines.filter((line) => line.includes('audit: reset')).length, 1);
});
