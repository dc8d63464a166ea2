import test from 'ava';
import { Value } from 'typebox/value';
import { instanceKey } from '../../shared/instance-key.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { revisionOf } from '../../test/support/revision-store.ts';
import { type Counted, type Figures, noFigures } from '../fleet/tally.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { buildSnapshots } from '../snapshot/build.ts';
import { selectSnapshot } from '../snapshot/served.ts';
import type { NodeIdentity, Snapshot } from '../snapshot/snapshot.ts';
import type { ConnectedWorker, VanishedWorker } from '../xds/workers.ts';
import {
  factsJson,
  noPeers,
  type RolloutFacts,
  readOwnFacts,
  toPeerFacts,
  type WorkerFacts,
} from './facts.ts';

const worker: WorkerFacts = {
  key: 'i',
  id: 'w',
  instance: 'i',
  name: "'w'",
  pool: 0,
  isAffected: true,
  state: 'refused',
  refusal: 'bad unit',
  counted: null,
};
const gone = { key: 'x', hadIt: true, forMs: 10 };
const askedAtMs = 7;

function answer(facts: Partial<RolloutFacts> = {}): PeerAnswer<RolloutFacts> {
  return {
    url: 'http://b',
    value: { record: 'r', serves: 'r', workers: [worker], gone: [gone], ...facts },
  };
}

test('workers of a peer that follows the record count as they are', (t) => {
  t.deepEqual(toPeerFacts([answer()], 'r', askedAtMs), {
    workers: [worker],
    gone: [gone],
    unknown: undefined,
    lacks: false,
    askedAtMs,
  });
  t.deepEqual(toPeerFacts([], 'r', askedAtMs), { ...noPeers, askedAtMs });
});

for (const serves of ['before', null]) {
  test(`of a peer that serves ${serves} nothing is known, and its workers have refused and counted nothing`, (t) => {
    const counted = { series: 's', hasIt: true, decisions: 900, overLimit: 900, errors: 0 };
    const workers = [{ ...worker, counted }];
    t.deepEqual(toPeerFacts([answer({ serves, workers })], 'r', askedAtMs), {
      ...noPeers,
      askedAtMs,
      unknown: 'waits for peer http://b to follow this step',
      workers: [{ ...worker, state: 'pending', refusal: null, counted: null }],
    });
  });
}

test('a peer without an answer is named', (t) => {
  const away = { url: 'http://c', error: 'HTTP 503', last: undefined };
  const unknownOf = (...answers: PeerAnswer<RolloutFacts>[]) =>
    toPeerFacts(answers, 'r', askedAtMs).unknown;
  const text = 'waits for peer http://c, which gives no answer (HTTP 503)';
  t.is(unknownOf(answer(), away), text);
  t.is(unknownOf(away, answer({ serves: null })), text);
  t.regex(unknownOf(answer({ serves: null }), away) ?? '', /^waits for peer http:\/\/b to follow/);
});

test('the other peers are known while one gives no answer', (t) => {
  const away = { url: 'http://c', error: 'HTTP 503', last: undefined };
  const { workers, gone: left } = toPeerFacts([away, answer()], 'r', askedAtMs);
  t.deepEqual([workers, left], [[worker], [gone]]);
});

// Of this control plane: revision 2 is on trial with everybody, revision 1 in force.

const encode = loadProtos().rateLimitConfig.serialize;
const snapshotOf = (number: number): Snapshot => {
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const outcome = buildSnapshots(revisionOf(number), options, { encode });
  const node = { id: '', cluster: '', metadata: new Map<string, string>() };
  const snapshot = outcome.ok ? selectSnapshot(outcome.built.groups, node) : undefined;
  if (snapshot === undefined) throw new Error(`revision ${number} has no snapshot`);
  return snapshot;
};
const [before, after] = [snapshotOf(1), snapshotOf(2)];
const versionAt = (snapshot: Snapshot) => ({ version: snapshot.version, atMs: 0 });

function nodeOf(id: string, instance: string | undefined): NodeIdentity {
  return {
    id,
    cluster: '',
    metadata: new Map(instance === undefined ? [] : [[instanceKey, instance]]),
  };
}

function connected(
  id: string,
  instance: string | undefined,
  given: Partial<ConnectedWorker> = {},
): ConnectedWorker {
  return {
    node: nodeOf(id, instance),
    instance,
    address: '10.0.0.1:1',
    mode: 'sotw',
    sinceMs: 0,
    sent: undefined,
    acked: versionAt(after),
    nacked: undefined,
    wantedVersion: ({ version }) => version,
    ...given,
  };
}

const counted: Counted = {
  nodeId: 'w',
  series: 's',
  version: after.version,
  decisions: 5,
  overLimit: 2,
  errors: 1,
  noMatch: 3,
  domains: new Map([['revision-2', { hits: 4, overLimit: 1 }]]),
  recent: noFigures,
  before: undefined,
  storeAway: undefined,
};
const domainsOf = (...hits: readonly [string, number, number][]) =>
  hits.map(([name, count, overLimit]) => ({ name, hits: count, overLimit }));

interface Sources {
  readonly workers?: readonly ConnectedWorker[];
  readonly vanished?: readonly VanishedWorker[];
  readonly counted?: readonly (readonly [string, Counted])[];
  readonly snapshots?:
    | { readonly before?: Snapshot | undefined; readonly after?: Snapshot | undefined }
    | undefined;
  readonly isOnTrial?: boolean;
}

function read({
  workers = [connected('w', 'i')],
  vanished = [],
  counted: sums = [],
  isOnTrial = true,
  ...rest
}: Sources) {
  const snapshots = 'snapshots' in rest ? rest.snapshots : { before, after };
  return readOwnFacts(
    {
      workers: { list: () => workers, vanished: () => vanished },
      snapshots: {
        current: () => snapshots?.after ?? before,
        compare: () =>
          isOnTrial && snapshots ? { before: snapshots.before, after: snapshots.after } : undefined,
      },
      readCounted: () => new Map(sums),
    },
    { poolOf: () => 3 },
    10_000,
  );
}

const only = (sources: Sources) => {
  const [first] = read(sources).workers;
  if (first === undefined) throw new Error('there is no worker');
  return first;
};

test('a worker is told with what it has and what it counts', (t) => {
  const facts = read({ counted: [['i', counted]] });
  t.deepEqual(facts, {
    workers: [
      {
        key: 'i',
        id: 'w',
        instance: 'i',
        name: "'w'",
        pool: 3,
        isAffected: true,
        state: 'in_force',
        refusal: null,
        counted: {
          ...{ series: 's', hasIt: true, decisions: 5, overLimit: 2, errors: 1, noMatch: 3 },
          domains: domainsOf(['revision-1', 0, 0], ['revision-2', 4, 1]),
        },
      },
    ],
    gone: [],
  });
  t.true(Value.Check(factsJson, { record: 'r', serves: null, ...facts }));
});

test('what a worker counted without the revision is told: lately, or before it got it', (t) => {
  const figures: Figures = { ...noFigures, decisions: 900, overLimit: 90 };
  const recentOf = (given: Partial<Counted>) =>
    only({ counted: [['i', { ...counted, ...given }]] }).counted?.recent;
  const none = domainsOf(['revision-1', 0, 0], ['revision-2', 0, 0]);
  const told = { decisions: 900, overLimit: 90, errors: 0, noMatch: 0, domains: none };
  t.deepEqual(recentOf({ before: { version: before.version, figures } }), told);
  t.is(recentOf({ before: { version: 'other', figures } }), undefined);
  t.deepEqual(recentOf({ version: before.version, recent: figures }), told);
});

test('domains that the revision does not change are not told', (t) => {
  const sums = { ...counted, domains: new Map([['else', { hits: 9, overLimit: 0 }]]) };
  t.deepEqual(
    only({ counted: [['i', sums]] }).counted?.domains?.map(({ name }) => name),
    ['revision-1', 'revision-2'],
  );
});

test('facts of workers that are told while nothing is on trial are read by peers', (t) => {
  const sources = {
    workers: { list: () => [connected('w', undefined)], vanished: () => [] },
    snapshots: { current: () => before, compare: () => undefined },
    readCounted: () => new Map(),
  };
  const facts = readOwnFacts(sources, undefined, 0);
  t.is(facts.workers[0]?.pool, 0);
  t.true(Value.Check(factsJson, { record: 'r', serves: 'r', ...facts }));
});

test('figures under the version in force are those of a worker without it', (t) => {
  t.is(only({ counted: [['i', { ...counted, version: before.version }]] }).counted?.hasIt, false);
});

const unbelieved: readonly (readonly [string, Sources])[] = [
  ['of another instance', { counted: [['j', counted]] }],
  ['of another node id', { counted: [['i', { ...counted, nodeId: 'x' }]] }],
  [
    'under a version that is neither on trial nor in force',
    { counted: [['i', { ...counted, version: 'other' }]] },
  ],
  [
    'of a worker that it changes nothing for',
    { counted: [['i', counted]], snapshots: { before: after, after } },
  ],
  [
    'of a worker of another make',
    {
      workers: [connected('w', undefined)],
      counted: [
        ['w', counted],
        ['', counted],
      ],
    },
  ],
  ['while nothing is on trial', { counted: [['i', counted]], isOnTrial: false }],
];
for (const [what, sources] of unbelieved) {
  // Proof of SECURITY.md: cannot speak for another worker, or take its stream
  test(`figures ${what} count nothing`, (t) => {
    t.is(only(sources).counted, null);
  });
}

test('a worker is affected where it gets something else with the revision', (t) => {
  t.true(only({}).isAffected);
  t.false(only({ snapshots: { before: after, after } }).isAffected);
  t.false(only({ isOnTrial: false }).isAffected);
  t.true(only({ snapshots: { before: undefined, after } }).isAffected);
  t.false(
    only({ workers: [connected('w', 'i', { wantedVersion: () => undefined })] }).isAffected,
    'it wants other domains',
  );
  t.false(
    only({ workers: [connected('w', 'i', { wantedVersion: () => 'the same part' })] }).isAffected,
  );
});

test('a refusal is one of the version that the worker is given', (t) => {
  const refusing = (version: string | undefined, text = 'no such unit') =>
    only({
      workers: [
        connected('w', 'i', { acked: versionAt(before), nacked: { version, text, atMs: 0 } }),
      ],
    });
  t.like(refusing(after.version), { state: 'refused', refusal: 'no such unit' });
  t.like(refusing('older'), { state: 'refused', refusal: null });
  t.like(refusing(undefined), { state: 'refused', refusal: null });
  t.is(refusing(after.version, 'x'.repeat(9_000)).refusal?.length, 500);
  t.like(only({ workers: [connected('w', 'i', { acked: versionAt(before) })] }), {
    state: 'pending',
    refusal: null,
  });
});

test('workers of other makes are told apart by their addresses, and named where they share an id', (t) => {
  const { workers } = read({
    workers: [
      connected('default', undefined),
      connected('default', undefined, { address: '10.0.0.2:1' }),
      connected('own', 'instance-of-own'),
    ],
  });
  t.is(new Set(workers.map(({ key }) => key)).size, 3);
  t.deepEqual(
    workers.map(({ name }) => name),
    ["'default (at 10.0.0.1:1)'", "'default (at 10.0.0.2:1)'", "'own'"],
  );
});

const lost = (
  acked: Snapshot | undefined,
  given: Partial<VanishedWorker> = {},
): VanishedWorker => ({
  node: nodeOf('w', 'i'),
  instance: 'i',
  address: '10.0.0.1:1',
  sent: undefined,
  acked: acked && versionAt(acked),
  nacked: undefined,
  goneAtMs: 4_000,
  ...given,
});

test('a worker that vanished is told with what it had', (t) => {
  const goneOf = (sources: Sources) => read({ workers: [], ...sources }).gone;
  t.deepEqual(goneOf({ vanished: [lost(after)] }), [{ key: 'i', hadIt: true, forMs: 6_000 }]);
  t.deepEqual(goneOf({ vanished: [lost(before)] }), [{ key: 'i', hadIt: false, forMs: 6_000 }]);
  t.deepEqual(goneOf({ vanished: [lost(snapshotOf(3))] }), []);
  t.deepEqual(goneOf({ vanished: [lost(undefined)] }), []);
  t.deepEqual(goneOf({ vanished: [lost(after)], isOnTrial: false }), []);
  t.deepEqual(goneOf({ vanished: [lost(after)], snapshots: { before: after, after } }), []);
  const offered = { sent: versionAt(after) };
  const one = [{ key: 'i', hadIt: true, forMs: 6_000 }];
  t.deepEqual(goneOf({ vanished: [lost(before, offered)] }), one, 'killed by what it loads');
  t.deepEqual(goneOf({ vanished: [lost(undefined, offered)] }), one);
  const refused = { ...offered, nacked: { version: after.version, text: '', atMs: 0 } };
  t.is(goneOf({ vanished: [lost(before, refused)] })[0]?.hadIt, false);
  const just = goneOf({ vanished: [{ ...lost(after), goneAtMs: 11_000 }] });
  t.is(just[0]?.forMs, 0);
  t.true(Value.Check(factsJson, { record: 'r', serves: null, workers: [], gone: just }));
});
