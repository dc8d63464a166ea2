import test from 'ava';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import type { MemoryState } from '../record/record-state.ts';
import type { Phase } from '../rollout/decide.ts';
import type { RolloutState } from '../rollout/rollout-json.ts';
import { createSnapshot, type NodeIdentity, type Snapshot } from '../snapshot/snapshot.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { toOverview } from './overview.ts';

const snapshot = createSnapshot([]);
const [r1, r2] = [1_000, 2_000].map((atMs) => ({
  id: String(atMs),
  atMs,
  author: 'Ann',
  message: 'a change',
}));
if (r1 === undefined || r2 === undefined) throw new Error('there are two revisions');

const inForce: NonNullable<SnapshotState['inForce']> = {
  revision: r1,
  sinceMs: 5_000,
  content: 'one',
  isAtOnce: false,
  mayRemove: false,
  domains: ['shop', 'mail'],
  served: { domains: 2, limits: 3, fewer: [], fewerInAll: 0 },
  nodeGroups: [],
  groups: [],
  leftOut: [],
};
const newest: NonNullable<SnapshotState['newest']> = {
  revision: r2,
  content: undefined,
  valid: false,
  isHeldBack: true,
  isWaiting: false,
  earlierVerdict: undefined,
  problems: [
    problemOf('warning', 'other', 'b.yaml', 'odd'),
    problemOf('error', 'other', 'a.yaml', 'wrong'),
    problemOf('note', 'other', 'a.yaml', 'by the way'),
    problemOf('error', 'other', 'c.yaml', 'wrong too'),
    problemOf('error', 'other', 'd.yaml', 'wrong as well'),
  ],
};
const store: SnapshotState['store'] = {
  reachable: false,
  lastSuccessMs: 9_000,
  failingSinceMs: 9_500,
  lastError: 'connection refused',
  revision: r2,
};
const state: SnapshotState = {
  store,
  newest,
  inForce,
  trial: undefined,
  withdrawn: undefined,
  stale: { reason: 'store_unreachable', sinceMs: 9_500 },
  counts: { accepted: 3, refused: 2, takenBack: 1 },
};
const memory: MemoryState = {
  location: 'beside the rules',
  denied: undefined,
  error: undefined,
  aside: undefined,
  isForgetful: false,
  verdicts: [],
  outcomes: [],
};

function rolloutOf(phase: Phase): RolloutState {
  const workers = { having: 1, chosen: 2, others: 17 };
  return {
    ...{ id: null, revision: r2?.id ?? '', since: '', step: 1, steps: 2, phase, text: '' },
    ...{ workers, reach: '' },
    leader: null,
    ledHereSinceMs: 7,
  };
}

function workerOf(id: string, change: Partial<ConnectedWorker>): ConnectedWorker {
  const node: NodeIdentity = { id, cluster: '', metadata: new Map() };
  return {
    ...{ node, instance: undefined, address: '10.0.0.1:5', mode: 'sotw', sinceMs: 1 },
    ...{ sent: undefined, acked: undefined, nacked: undefined },
    wantedVersion: (wanted: Snapshot) => wanted.version,
    ...change,
  };
}

/** At 400 s, the second one has been gone for five minutes. */
const vanished = [100_001, 100_000].map((goneAtMs) => ({
  ...{ node: { id: 'w', cluster: '', metadata: new Map() }, instance: 'i', address: '' },
  ...{ sent: undefined, acked: undefined, nacked: undefined, goneAtMs },
}));

function overviewOf(
  parts: {
    readonly state?: Partial<SnapshotState>;
    readonly workers?: readonly ConnectedWorker[];
    readonly rollout?: RolloutState;
    readonly memory?: Partial<MemoryState>;
  } = {},
) {
  return toOverview(
    { state: () => ({ ...state, ...parts.state }), current: () => snapshot },
    { list: () => parts.workers ?? [], vanished: () => vanished },
    { state: () => parts.rollout, memory: () => ({ ...memory, ...parts.memory }) },
    {},
    400_000,
  );
}

test('each figure of the overview comes from the state', (t) => {
  const has = { version: snapshot.version, atMs: 1 };
  const nacked = { version: snapshot.version, text: 'no', atMs: 1 };
  const workers = [
    ...['a', 'b', 'c'].map((id) => workerOf(id, { acked: has })),
    ...['d', 'e'].map((id) => workerOf(id, {})),
    workerOf('f', { nacked }),
  ];
  t.deepEqual(overviewOf({ workers, rollout: rolloutOf('holding') }), {
    revisionInForceAtMs: 1_000,
    isStale: true,
    newest: { isValid: false, isHeldBack: true, errors: 3, warnings: 1 },
    domains: 2,
    isStoreReachable: false,
    storeSuccessAtMs: 9_000,
    revisions: { accepted: 3, refused: 2, taken_back: 1 },
    rollout: { isPaused: false, workers: 2, ledHereSinceMs: 7 },
    isRecordShared: true,
    isForgetful: false,
    certificates: {},
    workers: { in_force: 3, pending: 2, refused: 1, gone: 1 },
  });
});

test('before the first read there is no revision in force, and the newest one is unknown', (t) => {
  const overview = overviewOf({
    state: { inForce: undefined, newest: undefined, stale: undefined },
  });
  t.like(overview, {
    revisionInForceAtMs: undefined,
    newest: undefined,
    domains: 0,
    isStale: false,
    rollout: undefined,
  });
});

test('a valid and current revision is shown as such', (t) => {
  const overview = overviewOf({
    state: {
      stale: undefined,
      store: { ...store, reachable: true },
      newest: { ...newest, valid: true, isHeldBack: false, problems: [] },
    },
  });
  t.like(overview, {
    isStale: false,
    isStoreReachable: true,
    newest: { isValid: true, isHeldBack: false, errors: 0, warnings: 0 },
  });
});

for (const [phase, isPaused] of Object.entries({
  gathering: false,
  spreading: false,
  holding: false,
  silent: false,
  paused: true,
  indivisible: true,
  taking_back: false,
} satisfies Record<Phase, boolean>)) {
  test(`a rollout that is ${phase} ${isPaused ? 'waits' : 'does not wait'} for an operator`, (t) => {
    t.is(overviewOf({ rollout: rolloutOf(phase as Phase) }).rollout?.isPaused, isPaused);
  });
}

test('a record that is denied, or cannot be written, is not shared', (t) => {
  t.false(overviewOf({ memory: { denied: 'read-only' } }).isRecordShared);
  t.false(overviewOf({ memory: { error: 'a push was refused' } }).isRecordShared);
  t.true(overviewOf({ memory: { isForgetful: true } }).isForgetful);
});
