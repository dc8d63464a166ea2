import test from 'ava';
import { Value } from 'typebox/value';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import type { MemoryState } from '../record/record-state.ts';
import type { RolloutState } from '../rollout/rollout-state.ts';
import {
  createResource,
  createSnapshot,
  type NodeIdentity,
  type Snapshot,
} from '../snapshot/snapshot.ts';
import type { InForceState, SnapshotState } from '../snapshot/snapshot-state.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { mergeStatus } from './merged-status.ts';
import { toReachText } from './rollout-json.ts';
import { judgeShrunk, statusJson, toStatusJson } from './status-report.ts';
import type { WorkerSnapshots } from './worker-json.ts';

const nowMs = 1_800_000_000_000;
const snapshot = createSnapshot([]);
const [r1, r2] = ['1', '2'].map((digit) => ({
  id: digit.repeat(40),
  atMs: nowMs - 60_000,
  author: 'Ann',
  message: 'a change',
}));
if (r1 === undefined || r2 === undefined) throw new Error('there are two revisions');

function stateOf(change: Partial<SnapshotState> = {}): SnapshotState {
  return {
    store: {
      reachable: true,
      lastSuccessMs: nowMs,
      failingSinceMs: undefined,
      lastError: undefined,
      revision: r1,
    },
    newest: {
      revision: r1,
      content: 'one',
      valid: true,
      isHeldBack: false,
      isWaiting: false,
      saidBefore: undefined,
      problems: [],
    },
    inForce: {
      revision: r1,
      sinceMs: nowMs - 5_000,
      domains: ['shop'],
      served: { domains: 1, limits: 3, fewer: [], fewerInAll: 0 },
      saidBefore: undefined,
      groups: [],
      unchangedGroups: new Set<string>(),
      leftOut: [],
    },
    stale: undefined,
    counts: { accepted: 1, refused: 0, takenBack: 0 },
    ...change,
  } as SnapshotState;
}

function workerOf(id: string, change: Partial<ConnectedWorker> = {}): ConnectedWorker {
  const node: NodeIdentity = { id, cluster: '', metadata: new Map() };
  const has = { version: snapshot.version, atMs: nowMs };
  const stream = {
    instance: undefined,
    address: '10.0.0.1:5',
    mode: 'sotw' as const,
    sinceMs: nowMs,
  };
  const wantedVersion = (wanted: Snapshot) => wanted.version;
  return { node, ...stream, sent: has, acked: has, nacked: undefined, wantedVersion, ...change };
}

function statusOf(
  state: SnapshotState,
  workers: readonly ConnectedWorker[] = [],
  rollout?: RolloutState,
  memory: Partial<MemoryState> = {},
  snapshots: Partial<WorkerSnapshots> = {},
) {
  return toStatusJson({
    asked: undefined,
    storeDescription: '/rules',
    snapshots: {
      state: () => state,
      current: () => (state.inForce ? snapshot : undefined),
      groupOf: () => 'default',
      compare: () => undefined,
      ...snapshots,
    },
    workers,
    linked: [],
    gone: [],
    tellsFleet: true,
    nowMs,
    rollout,
    rolloutWarning: undefined,
    clockProblem: undefined,
    setAside: [],
    memory: {
      place: 'beside the rules',
      denied: undefined,
      trouble: undefined,
      aside: undefined,
      isForgetful: false,
      words: [],
      outcomes: [],
      ...memory,
    },
  });
}

const none = { connected: 0, inForce: 0, onTrial: 0, pending: 0, refused: 0, gone: 0 };
const old = { version: 'old', atMs: nowMs };
const refusal = { version: snapshot.version, text: 'duplicate domain', atMs: nowMs };
const failing = { ...stateOf().store, reachable: false, failingSinceMs: nowMs - 90_000 };
const invalid = {
  revision: r2,
  content: undefined,
  valid: false,
  isHeldBack: false,
  isWaiting: false,
  saidBefore: undefined,
  problems: [
    problemOf('warning', 'other', 'b.yaml', 'odd'),
    problemOf('error', 'other', 'a.yaml', 'wrong'),
  ],
};

const cases: [string, SnapshotState, readonly ConnectedWorker[], string, string][] = [
  [
    'no worker',
    stateOf(),
    [],
    'no_workers',
    'revision 111111111111 is served, but no workers are connected',
  ],
  [
    'all workers have it',
    stateOf(),
    [workerOf('a'), workerOf('b')],
    'in_force',
    'revision 111111111111 is in force on all 2 connected workers',
  ],
  [
    'one has acknowledged it and decides by another one',
    stateOf(),
    [workerOf('a'), workerOf('b', { isUnused: true })],
    'pending',
    'revision 111111111111 is in force on 1 of 2 workers, 1 has acknowledged it without using it (b)',
  ],
  [
    'one has not answered',
    stateOf(),
    [workerOf('a'), workerOf('b', { acked: old })],
    'pending',
    'revision 111111111111 is in force on 1 of 2 workers, 1 has not answered (b)',
  ],
  [
    'one has refused, though it had accepted the same before',
    stateOf(),
    [workerOf('a'), workerOf('b', { nacked: refusal })],
    'refused',
    'revision 111111111111 is refused by 1 of 2 workers and in force on 1; b says: duplicate domain',
  ],
  [
    'the newest is invalid',
    stateOf({ newest: invalid }),
    [workerOf('a')],
    'invalid',
    'revision 222222222222 has 1 error (a.yaml: wrong): revision 111111111111 stays in force',
  ],
  [
    'the first one is invalid, and nothing is in force',
    stateOf({ newest: invalid, inForce: undefined }),
    [],
    'invalid',
    'revision 222222222222 has 1 error (a.yaml: wrong): nothing is in force',
  ],
  [
    'the store is away',
    stateOf({ store: { ...failing, lastError: 'connection refused' } }),
    [workerOf('a')],
    'pending',
    'the store has not been reached for 1m30s (connection refused), so the newest revision is not known: revision 111111111111 stays in force',
  ],
  [
    'the newest is invalid and the store is away',
    stateOf({ store: failing, newest: invalid }),
    [],
    'invalid',
    'revision 222222222222 has 1 error (a.yaml: wrong): revision 111111111111 stays in force',
  ],
  [
    'nothing has been read yet',
    stateOf({ newest: undefined, inForce: undefined }),
    [],
    'pending',
    'no revision has been read from the store yet: nothing is in force',
  ],
];
for (const [title, state, workers, verdict, text] of cases) {
  test(`the verdict when ${title} is ${verdict}`, (t) => {
    const status = statusOf(state, workers);
    t.deepEqual({ verdict: status.verdict, text: status.text }, { verdict, text } as never);
  });
}

test('workers that share a node id are named with what tells them apart', (t) => {
  const { text, waitingFor } = statusOf(stateOf(), [
    workerOf('edge', { instance: '3f2a91c0-5d3e', acked: old }),
    workerOf('edge', { instance: '77777777-5d3e', nacked: refusal }),
    workerOf('edge'),
    workerOf('alone', { instance: '99999999-5d3e', acked: old }),
  ]);
  t.is(
    text,
    'revision 111111111111 is refused by 1 of 4 workers and in force on 1, 2 have not answered (edge (instance 3f2a91c0), alone); edge (instance 77777777) says: duplicate domain',
  );
  t.deepEqual(
    waitingFor.map(({ name, instance }) => [name, instance]),
    [
      ['edge (instance 3f2a91c0)', '3f2a91c0-5d3e'],
      ['edge (instance 77777777)', '77777777-5d3e'],
      ['alone', '99999999-5d3e'],
    ],
  );
});

test('workers that are waited for are shown with what they have', (t) => {
  const { workers, waitingFor } = statusOf(stateOf(), [
    workerOf('a'),
    workerOf('b', { nacked: refusal, acked: old }),
    workerOf('c', { acked: undefined }),
  ]);
  t.deepEqual(workers, { ...none, connected: 3, inForce: 1, pending: 1, refused: 1 });
  t.deepEqual(
    waitingFor.map(({ id, state, acked, nacked }) => [id, state, acked?.version, nacked?.text]),
    [
      ['b', 'refused', 'old', 'duplicate domain'],
      ['c', 'pending', undefined, undefined],
    ],
  );
});

test('a worker that wants a part is in force with the version of the part, not of the whole', (t) => {
  const part = { version: 'part', atMs: nowMs };
  const wantedVersion = () => 'part';
  const { verdict, workers, waitingFor } = statusOf(stateOf(), [
    workerOf('has it', { acked: part, wantedVersion }),
    workerOf('has the whole', { wantedVersion }),
  ]);
  t.is(verdict, 'pending');
  t.deepEqual(workers, { ...none, connected: 2, inForce: 1, pending: 1 });
  t.deepEqual(
    waitingFor.map(({ id, expected }) => [id, expected]),
    [['has the whole', 'part']],
  );
});

test('a worker that wants nothing holds up nothing, whatever it had and refused before', (t) => {
  const wantedVersion = () => undefined;
  const workers = [
    workerOf('a', { acked: undefined, wantedVersion }),
    workerOf('b', { nacked: refusal, wantedVersion }),
  ];
  t.is(statusOf(stateOf(), workers).verdict, 'in_force');
  const text = 'revision 111111111111 is in force on 2 of 3 workers, 1 has not answered (c)';
  t.is(statusOf(stateOf(), [...workers, workerOf('c', { acked: old })]).text, text);
  const { workers: counts } = statusOf(stateOf({ inForce: undefined }), workers);
  t.deepEqual(counts, { ...none, connected: 2, pending: 1, refused: 1 });
});

test('rules that an earlier process kept are stale until the store has answered', (t) => {
  t.is(statusOf(stateOf()).stale, null);
  t.deepEqual(statusOf(stateOf({ newest: undefined })).stale, {
    reason: 'store_unreachable',
    since: new Date(nowMs - 5_000).toISOString(),
  });
});

const rollout: RolloutState = {
  revision: r2.id,
  sinceMs: nowMs - 20_000,
  step: 0,
  steps: 2,
  phase: 'indivisible',
  text: 'no share can be made',
  workers: { having: 0, chosen: 0, others: 1 },
  leader: undefined,
  ledHereSinceMs: 1,
};
const onTrial = stateOf({ newest: { ...invalid, valid: true, problems: [] } });

test('a rollout that has no effect is held back until somebody approves it', (t) => {
  t.like(statusOf(onTrial, [workerOf('a')], rollout), {
    verdict: 'held_back',
    text: 'revision 222222222222 is being rolled out (step 0 of 2, 0 of 0 workers have it, 1 other does not; no share can be made): revision 111111111111 stays in force',
  });
});

test('a revision that is taken back says so before that is on record', (t) => {
  const taken = { ...rollout, phase: 'taking_back' as const, text: 'errors 9.0 %' };
  t.like(statusOf(onTrial, [workerOf('a')], taken), {
    verdict: 'pending',
    text: 'revision 222222222222 is taken back (errors 9.0 %): revision 111111111111 stays in force',
  });
});

test('the workers of a rollout are counted in plain English', (t) => {
  const textOf = (having: number, chosen: number, others: number) =>
    toReachText({ having, chosen, others }, null);
  t.is(textOf(0, 1, 2), '0 of 1 worker has it, 2 others do not');
  t.is(textOf(1, 3, 1), '1 of 3 workers has it, 1 other does not');
  t.is(textOf(2, 3, 0), '2 of 3 workers have it, 0 others do not');
});

test('a control plane that does not lead a rollout speaks of its own workers alone', (t) => {
  const leader = { name: 'b:1', isThis: false, sinceMs: 0, after: undefined };
  const workers = { having: 1, chosen: 1, others: 9 };
  t.regex(
    statusOf(onTrial, [], { ...rollout, phase: 'holding', leader, workers }).text,
    /1 of 1 worker of this control plane has it, 9 others do not; .*; b:1 leads since 1970-01-01T00:00:00\.000Z\)/,
  );
});

test('a rollout that is paused says why, or who has paused it', (t) => {
  const textOf = (text: string) =>
    statusOf(onTrial, [], { ...rollout, phase: 'paused', text }).text.replace(
      /.*does not; |\).*/g,
      '',
    );
  t.is(textOf('too little traffic'), 'paused (too little traffic');
  t.is(textOf('paused by bob: lunch'), 'paused by bob: lunch');
});

test('the served revision is settled when nothing has changed for ten seconds', (t) => {
  const since = (agoMs: number) => ({
    ...stateOf(),
    inForce: { ...(stateOf().inForce as InForceState), sinceMs: nowMs - agoMs },
  });
  t.false(statusOf(since(9_999)).settled);
  t.true(statusOf(since(10_000)).settled);
  t.false(statusOf(since(20_000), [], { ...rollout, sinceMs: nowMs - 9_999 }).settled);
  t.true(statusOf(since(20_000), [], rollout).settled);
  const refused = (agoMs: number) => ({
    ...since(20_000),
    newest: invalid,
    stale: { reason: 'newest_invalid' as const, sinceMs: nowMs - agoMs },
  });
  t.false(statusOf(refused(9_999)).settled);
  t.true(statusOf(refused(10_000)).settled);
});

test('a record that cannot be shared, or may get lost, is a problem of the memory', (t) => {
  const problemOf = (memory: Partial<MemoryState>) =>
    statusOf(stateOf(), [], undefined, memory).memory;
  t.deepEqual(problemOf({}), { place: 'beside the rules', problem: null });
  t.is(problemOf({ trouble: 'it cannot be read (EIO)' }).problem, 'it cannot be read (EIO)');
  t.is(
    problemOf({ denied: 'EROFS' }).problem,
    'beside the rules takes no writes (EROFS): only the state directory has what was taken back, held back or approved',
  );
  t.is(
    problemOf({ denied: 'EROFS', isForgetful: true }).problem,
    'beside the rules takes no writes (EROFS): the state directory was empty at the start, so what was taken back, held back or approved before is not known',
  );
});

test('while the record cannot be read nothing is served, and status says what it waits for', (t) => {
  const trouble = 'the record cannot be read (it is cut or damaged: somebody has to remove it)';
  const { verdict, text } = statusOf(
    stateOf({ newest: undefined, inForce: undefined }),
    [],
    undefined,
    { trouble },
  );
  t.is(verdict, 'pending');
  t.is(
    text,
    `no revision is served before it is known what was taken back: ${trouble}: nothing is in force`,
  );
});

const tried = createSnapshot([createResource('shop', Buffer.from('tried'))]);
const trial = {
  revision: r2,
  sinceMs: nowMs,
  content: 'two',
  supersedes: false,
  mayRemove: false,
  saidBefore: undefined,
  groups: [],
  unchangedGroups: new Set<string>(),
};

/** Nodes whose id begins with `c` are given the revision on trial. */
const inTrial: Partial<WorkerSnapshots> = {
  current: ({ id }) => (id.startsWith('c') ? tried : snapshot),
  compare: () => ({ before: snapshot, after: tried }),
};

test('a worker of a rollout has a revision on trial or in force, or is on its way to one', (t) => {
  const has = { version: tried.version, atMs: nowMs };
  const workers = [
    workerOf('c-1', { acked: has }),
    workerOf('c-2'),
    workerOf('c-3', { acked: old, nacked: { ...refusal, version: tried.version } }),
    workerOf('a'),
    workerOf('b', { acked: has }),
  ];
  const status = statusOf({ ...onTrial, trial }, workers, rollout, {}, inTrial);
  t.deepEqual(status.workers, {
    ...none,
    connected: 5,
    inForce: 1,
    onTrial: 1,
    pending: 2,
    refused: 1,
  });
  t.deepEqual(
    status.fleet?.workers.map(({ id, state, revision, gets }) => [id, state, revision, gets]),
    [
      ['c-1', 'on_trial', r2.id, r2.id],
      ['c-2', 'pending', r1.id, r2.id],
      ['c-3', 'refused', null, r2.id],
      ['a', 'in_force', r1.id, r1.id],
      ['b', 'pending', r2.id, r1.id],
    ],
  );
});

test('a refusal in a rollout is one in the verdict', (t) => {
  const worker = workerOf('c', { nacked: { ...refusal, version: tried.version } });
  const running = { ...rollout, phase: 'spreading' as const };
  const { verdict } = statusOf({ ...onTrial, trial }, [worker], running, {}, inTrial);
  t.is(verdict, 'refused');
});

test('a refusal of what is in force is none of a newer revision', (t) => {
  const workers = [workerOf('a', { nacked: refusal }), workerOf('c')];
  const running = { ...rollout, phase: 'spreading' as const };
  const status = statusOf({ ...onTrial, trial }, workers, running, {}, inTrial);
  t.is(status.verdict, 'pending');
  t.is(status.workers.refused, 1);
  const without = statusOf({ ...onTrial, trial: undefined }, workers.slice(0, 1));
  t.is(without.verdict, 'pending');
});

test('a trial that changes nothing for a worker leaves it in force', (t) => {
  const same = { compare: () => ({ before: snapshot, after: snapshot }) };
  const { workers, fleet } = statusOf({ ...onTrial, trial }, [workerOf('c')], rollout, {}, same);
  t.like(workers, { inForce: 1, onTrial: 0 });
  t.like(fleet?.workers[0], { revision: r1.id, gets: r1.id });
});

test('the answer of an older control plane, which tells disagreements alone, is understood', (t) => {
  const own = statusOf(stateOf({ inForce: undefined }));
  const { agreements: _, ...older } = own;
  const disagreement = {
    group: 'default',
    count: 2,
    agreements: ['aa', 'bb'].map((agreement) => ({
      agreement,
      workers: 1,
      example: { id: agreement, address: '10.0.0.1:1' },
    })),
  };
  const sent = JSON.stringify({ ...older, disagreements: [disagreement] });
  const answer = Value.Parse(statusJson, JSON.parse(sent));
  const merged = mergeStatus(own, [{ url: 'peer', value: answer }], undefined);
  t.like(merged.disagreements[0], { group: 'default', count: 2 });
});

test('files that were set aside are those of all control planes, and a peer is named', (t) => {
  const own = { ...statusOf(stateOf()), setAside: ['/state/a.json.unreadable'] };
  const peer = { ...statusOf(stateOf()), setAside: ['/state/a.json.unreadable'] };
  const { setAside: _, ...older } = statusOf(stateOf());
  const peers = [
    { url: 'http://peer', value: peer },
    { url: 'http://older', value: older },
  ];
  t.deepEqual(mergeStatus(own, peers, undefined).setAside, [
    '/state/a.json.unreadable',
    '/state/a.json.unreadable at http://peer',
  ]);
});

test('a fleet that has lost more than a third without a goodbye is not in force', (t) => {
  const own = {
    verdict: 'in_force',
    text: 'revision 1 is in force on the 1 connected worker',
  } as const;
  t.deepEqual(judgeShrunk(own, 1, 19), {
    verdict: 'pending',
    text: 'revision 1 is in force on the 1 connected worker, but 19 of 20 workers of the last 5 minutes are gone without a goodbye',
  });
  t.is(judgeShrunk(own, 2, 1).verdict, 'in_force');
  t.is(judgeShrunk(own, 3, 2).verdict, 'pending');
  t.is(judgeShrunk({ ...own, verdict: 'invalid' }, 1, 19).verdict, 'invalid');
});
