import test from 'ava';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { WorkerJson } from './fleet-json.ts';
import { collectFacts, type NoticeSources, toNotices, toNoticeText } from './notices.ts';

const nowMs = Date.parse('2026-03-01T14:10:00Z');
const sinceMs = new Date(2026, 2, 1, 14, 3, 20).getTime();

interface Given {
  readonly name: string;
  readonly mode?: string | undefined;
  readonly shadowMode?: boolean;
  readonly countsAlone?: boolean;
  readonly errors?: number;
  readonly store?: Partial<NonNullable<LinkedWorker['figures']>['store']>;
}

function link({ name, mode = 'allow', shadowMode = false, errors = 0, ...given }: Given) {
  return {
    hello: {
      ...{ nodeId: name, instance: name, agreement: '', allowsReset: true, values: 2 },
      ...{ countsAlone: given.countsAlone ?? false, failureMode: mode, shadowMode },
    },
    address: '',
    problem: undefined,
    figures: {
      errorsPerSecond: errors,
      store: { kind: 'redis', serversAway: 0, clockOffsetMs: 0, ...given.store },
    },
  } as unknown as LinkedWorker;
}

function worker(name: string, given: Partial<WorkerJson> = {}): WorkerJson {
  const at = new Date(sinceMs).toISOString();
  return {
    ...{ name, id: name, instance: name, connectedSince: at, expected: 'v2', figures: null },
    acked: { version: 'v2', at },
    ...given,
  } as unknown as WorkerJson;
}

const fine = {
  ...{ lastGoneAt: undefined, disagreements: [], unenforced: [], stale: null },
  store: { description: 'the directory', reachable: true, failingSince: null, error: null },
};

function list(given: Partial<NoticeSources>, more: object = {}): string[] {
  const workers = (given.linked ?? []).map(({ hello }) => worker(hello.nodeId));
  const sources = { workers, linked: [], nowMs, ...given };
  return format([sources], { ...fine, ...more });
}

function format(all: readonly NoticeSources[], context: typeof fine): string[] {
  const sum = (field: 'workers' | 'linked') =>
    all.reduce((total, each) => total + each[field].length, 0);
  const workers = { connected: sum('workers'), gone: 0, reporting: sum('linked') };
  const notices = toNotices(all.map(collectFacts), { workers, ...context });
  return notices.map((each) => toNoticeText(each, nowMs));
}

const unreachableSince = new Date(sinceMs).toISOString();
const away = { serversAway: 1, unreachableSince };

for (const [mode, effect] of [
  ['allow', 'all requests are allowed, nothing is counted'],
  ['deny', 'all requests are refused'],
  ['local', 'all requests are counted by each worker alone, so the limits hold for each worker'],
  ['error', "all requests end in an error, and the callers decide (Envoy's failure_mode_deny)"],
  ['', 'all requests are answered by KVSTORE_FAILURE_MODE of each worker'],
]) {
  test(`without the store, the notice describes the answers of the mode '${mode}'`, (t) => {
    const linked = [link({ name: 'a', mode, store: away }), link({ name: 'b', mode, store: away })];
    t.deepEqual(list({ linked }), [`Store unreachable since 14:03: ${effect}`]);
  });
}

test('some workers are named, and each failure mode has its own notice', (t) => {
  const linked = [
    link({ name: 'a', store: away }),
    link({ name: 'b', mode: 'deny', store: { ...away, isPartly: true } }),
    link({ name: 'c', store: { unreachableSince } }),
    link({ name: 'd', errors: 2 }),
  ];
  t.deepEqual(list({ linked }), [
    'Store unreachable from 1 of 4 workers (a) since 14:03: all their requests are allowed, nothing is counted',
    'Requests answered without the store by 1 of 4 workers (c) since 14:03: these requests are allowed, nothing is counted',
    'A part of the store unreachable from 1 of 4 workers (b) since 14:03: where it has the counter, requests are refused',
    "Requests end in an error on 1 of 4 workers (d): they are not decided, and the callers decide (Envoy's failure_mode_deny)",
  ]);
});

test('the workers of several control planes are counted together', (t) => {
  const planes = ['a', 'b'].map((name) => ({
    ...{ workers: [worker(name), worker(`${name}-fine`)], nowMs },
    linked: [link({ name, store: away }), link({ name: `${name}-fine` })],
  }));
  t.deepEqual(format(planes, fine), [
    'Store unreachable from 2 of 4 workers (a, b) since 14:03: all their requests are allowed, nothing is counted',
  ]);
});

test('workers that decide by no rules, or by rules other than those shown, are reported', (t) => {
  const shadow = [link({ name: 'a', shadowMode: true })];
  t.deepEqual(list({ linked: shadow }), [
    'Shadow mode on all workers: SHADOW_MODE is set, so no request is refused',
  ]);
  const figures = { version: 'v1', at: new Date(sinceMs + 60_000).toISOString() } as never;
  const just = { version: 'v1', at: new Date(sinceMs + 3_000).toISOString() } as never;
  const workers = [
    worker('none', { acked: null }),
    worker('new', { acked: null, connectedSince: new Date(nowMs).toISOString() }),
    worker('other', { figures }),
    worker('soon', { figures: just }),
  ];
  const elsewhere = [link({ name: 'stranger' })];
  t.deepEqual(list({ workers, linked: elsewhere }), [
    'No rules on 1 of 4 workers (none) since 14:03: their requests are allowed without a limit',
    'Other rules in use by 1 of 4 workers (other) since 14:03: requests are decided by other rules than the workers have acknowledged',
    'Rules from elsewhere: their requests are not decided by the rules of this control plane',
  ]);
});

test('a notice reports workers that have all left, that count separately, or whose clocks differ', (t) => {
  const at = new Date(sinceMs).toISOString();
  const gone = { workers: { connected: 0, gone: 2, reporting: 0 }, lastGoneAt: at };
  t.deepEqual(list({}, gone), [
    'No worker is connected since 14:03: what callers get is not known: the connections of 2 workers broke',
  ]);
  const linked = ['a', 'b'].map((name) =>
    link({ name, countsAlone: true, store: { clockOffsetMs: name === 'a' ? 9_000 : 0 } }),
  );
  t.deepEqual(list({ linked }), [
    "Clocks differ on 1 of 2 workers (a): windows begin and end earlier or later than by the store's clock",
    'Counters in memory: each worker counts alone, so a limit lets up to 2 times as much pass',
  ]);
  t.deepEqual(list({}, { store: { ...fine.store, reachable: false, failingSince: at } }), [
    'the directory has not been reached since 14:03: whether there is a newer revision is not known (no reason is known)',
  ]);
  t.deepEqual(list({}, { stale: { reason: 'store_unreachable', since: at } }), [
    'Rules of an earlier start in force since 14:03: the directory has not been read yet',
  ]);
});
