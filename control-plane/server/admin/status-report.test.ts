// Tests what status reports, in lines that can be reviewed: status-report.txt describes a control plane and its workers
// with the words defined below, and has the report. `REWRITE=1` writes the current report.
import test from 'ava';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { toTime } from '../api-shape.ts';
import type { MemoryState } from '../record/record-state.ts';
import type { RolloutState } from '../rollout/rollout-json.ts';
import { toReachText } from '../rollout/rollout-json.ts';
import {
  createResource,
  createSnapshot,
  type NodeIdentity,
  type Snapshot,
} from '../snapshot/snapshot.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import type { WorkerSnapshots } from './fleet-json.ts';
import { toFleetJson } from './fleet-json.ts';
import { toStatus } from './status.ts';
import { judgeShrunk, type OwnStatus, toOwnStatus } from './status-report.ts';

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
      earlierVerdict: undefined,
      problems: [],
    },
    inForce: {
      revision: r1,
      sinceMs: nowMs - 5_000,
      domains: ['shop'],
      served: { domains: 1, limits: 3, fewer: [], fewerInAll: 0 },
      earlierVerdict: undefined,
      groups: [],
      unchangedGroups: new Set<string>(),
      leftOut: [],
    },
    stale: undefined,
    counts: { accepted: 1, refused: 0, takenBack: 0 },
    ...change,
  } as SnapshotState;
}

const tried = createSnapshot([createResource('shop', Buffer.from('tried'))]);
const has = { version: snapshot.version, atMs: nowMs };
const refusal = { ...has, text: 'duplicate domain' };
const old = { version: 'old', atMs: nowMs };

/** `ID[/INSTANCE][:WORD]...`; a worker without words has acknowledged the revision in force. */
const workerWords: Readonly<Record<string, Partial<ConnectedWorker>>> = {
  old: { acked: old },
  silent: { acked: undefined },
  unused: { isUnused: true },
  refuses: { nacked: refusal },
  tried: { acked: { ...has, version: tried.version } },
  'refuses-tried': { nacked: { ...refusal, version: tried.version } },
  'has-part': { acked: { ...has, version: 'part' } },
  'wants-part': { wantedVersion: () => 'part' },
  'wants-nothing': { wantedVersion: () => undefined },
};

function toWorker(text: string): ConnectedWorker {
  const [name = '', ...words] = text.split(':');
  const [id = '', instance] = name.split('/');
  const node: NodeIdentity = { id, cluster: '', metadata: new Map() };
  return Object.assign(
    {
      ...{ node, instance, address: '10.0.0.1:5', mode: 'sotw' as const, sinceMs: nowMs },
      ...{ sent: has, acked: has, nacked: undefined },
      wantedVersion: (wanted: Snapshot) => wanted.version,
    },
    ...words.map((word) => known(workerWords, word)),
  );
}

function known<Value>(words: Readonly<Record<string, Value>>, word: string): Value {
  const value = words[word];
  if (value === undefined) throw new Error(`there is no word '${word}'`);
  return value;
}

interface Asked {
  readonly state: SnapshotState;
  readonly workers: readonly ConnectedWorker[];
  readonly rollout: RolloutState | undefined;
  readonly memory: Partial<MemoryState>;
  readonly snapshots: Partial<WorkerSnapshots>;
}

function statusOf({
  state = stateOf(),
  workers = [],
  rollout,
  memory = {},
  snapshots = {},
}: Partial<Asked>): OwnStatus {
  const allSnapshots = {
    state: () => state,
    current: () => (state.inForce ? snapshot : undefined),
    groupOf: () => 'default',
    compare: () => undefined,
    ...snapshots,
  };
  return toOwnStatus({
    asked: null,
    storeDescription: '/rules',
    state,
    fleet: toFleetJson(workers, [], [], allSnapshots),
    linked: [],
    nowMs,
    rollout,
    rolloutWarning: undefined,
    clockProblem: undefined,
    setAside: [],
    memory: {
      location: 'beside the rules',
      denied: undefined,
      error: undefined,
      aside: undefined,
      isForgetful: false,
      verdicts: [],
      outcomes: [],
      ...memory,
    },
  });
}

const newest: NonNullable<SnapshotState['newest']> = {
  ...{ revision: r2, content: undefined, valid: true },
  ...{ isHeldBack: false, isWaiting: false, earlierVerdict: undefined, problems: [] },
};
const problems = [
  problemOf('warning', 'other', 'b.yaml', 'odd'),
  problemOf('error', 'other', 'a.yaml', 'wrong'),
];
const running: RolloutState = {
  ...{ id: null, revision: r2.id, since: toTime(nowMs - 20_000), step: 0, steps: 2 },
  phase: 'indivisible',
  ...{ text: 'no share can be made', workers: { having: 0, chosen: 0, others: 1 } },
  ...{ reach: '', leader: null, ledHereSinceMs: 1 },
};
const trial: NonNullable<SnapshotState['trial']> = {
  ...{ revision: r2, sinceMs: nowMs, content: 'two', supersedes: false, mayRemove: false },
  ...{ earlierVerdict: undefined, groups: [], unchangedGroups: new Set<string>() },
};
const error = 'it cannot be read (it is cut or damaged: remove it)';
const withState = (asked: Asked, change: Partial<SnapshotState>) => ({
  state: { ...asked.state, ...change },
});
const withRollout = ({ rollout = running }: Asked, change: Partial<RolloutState>) => {
  const all = { ...rollout, ...change };
  return { rollout: { ...all, reach: toReachText(all.workers, all.leader) } };
};

/** `WORD` or `WORD=VALUE`, describing the query; revision 1 is in force and newest by default. */
const words: Readonly<Record<string, (asked: Asked, value: string) => Partial<Asked>>> = {
  /** The newest revision, and for how many milliseconds one has been in force, or newest and invalid. */
  invalid: (asked) => withState(asked, { newest: { ...newest, valid: false, problems } }),
  newer: (asked) => withState(asked, { newest }),
  unread: (asked) => withState(asked, { newest: undefined }),
  'not-in-force': (asked) => withState(asked, { inForce: undefined }),
  since: (asked, ms) =>
    withState(asked, {
      inForce: asked.state.inForce && { ...asked.state.inForce, sinceMs: nowMs - Number(ms) },
    }),
  'invalid-since': (asked, ms) =>
    withState(asked, { stale: { reason: 'newest_invalid', sinceMs: nowMs - Number(ms) } }),
  away: (asked, lastError) =>
    withState(asked, {
      store: {
        ...{ ...asked.state.store, reachable: false, failingSinceMs: nowMs - 90_000 },
        lastError: lastError || undefined,
      },
    }),
  /** A rollout of revision 2 in this phase, and its text; nodes whose id begins with `c` get the revision. */
  rollout: (asked, phase) => ({
    ...withState(asked, { newest }),
    ...withRollout(asked, { phase: phase as 'paused' }),
  }),
  says: (asked, text) => withRollout(asked, { text: text.replaceAll('_', ' ') }),
  'rolls-out-since': (asked, ms) => withRollout(asked, { since: toTime(nowMs - Number(ms)) }),
  reach: (asked, text) => {
    const [having = 0, chosen = 0, others = 0] = text.split('/').map(Number);
    return withRollout(asked, { workers: { having, chosen, others } });
  },
  leader: (asked, name) =>
    withRollout(asked, { leader: { name, isThis: false, since: toTime(0), after: null } }),
  trial: (asked) => ({
    ...withState(asked, { trial }),
    snapshots: {
      current: ({ id }) => (id.startsWith('c') ? tried : snapshot),
      compare: () => ({ before: snapshot, after: tried }),
    },
  }),
  'changes-nothing': (asked) => ({
    ...withState(asked, { trial }),
    snapshots: { compare: () => ({ before: snapshot, after: snapshot }) },
  }),
  /** The record. */
  trouble: () => ({ memory: { error } }),
  denied: () => ({ memory: { denied: 'EROFS' } }),
  forgetful: () => ({ memory: { denied: 'EROFS', isForgetful: true } }),
};

/** `[(WORDS)] WORKERS`. */
testLines(test, new URL('status-report.txt', import.meta.url), (given) => {
  const [, flags = '', ids = ''] = /^(?:\((.*?)\))? ?(.*)$/.exec(given) ?? [];
  let asked: Asked = {
    ...{ state: stateOf(), rollout: undefined, memory: {}, snapshots: {} },
    workers: ids.split(' ').flatMap((id) => (id === '-' || id === '' ? [] : [toWorker(id)])),
  };
  for (const flag of flags.split(' ').filter((each) => each !== '')) {
    const [word = '', value = ''] = flag.split('=');
    asked = { ...asked, ...known(words, word)(asked, value) };
  }
  const status = statusOf(asked);
  const { verdict, text, settled, stale, workers, waitingFor, memory, fleet } = status;
  const counted = Object.entries(workers).filter(([, count]) => count > 0);
  return [
    `${verdict}${settled ? ', settled' : ''}: ${text}`,
    ...(counted.length > 0 ? [counted.map(([name, count]) => `${name} ${count}`).join(', ')] : []),
    ...waitingFor.map(
      (each) =>
        `waits for ${each.name}, ${each.state}, ${each.acked?.version ?? 'nothing'} in place of ${each.expected}${each.nacked == null ? '' : `: ${each.nacked.text}`}`,
    ),
    ...(asked.state.trial === undefined ? [] : (fleet?.workers ?? [])).map(
      (each) => `${each.id} has ${toShort(each.revision)}, gets ${toShort(each.gets)}`,
    ),
    ...(stale === null ? [] : [`stale since ${stale.since}, ${stale.reason}`]),
    ...(memory.problem === null ? [] : [memory.problem]),
  ]
    .join(' ; ')
    .replaceAll(snapshot.version, 'all of it')
    .replaceAll(tried.version, 'what is tried');
});

function toShort(revision: string | null | undefined): string {
  return revision?.slice(0, 1) ?? 'none';
}

test('the workers of a rollout are counted in plain English', (t) => {
  const textOf = (having: number, chosen: number, others: number) =>
    toReachText({ having, chosen, others }, null);
  t.is(textOf(0, 1, 2), '0 of 1 worker has it, 2 others do not');
  t.is(textOf(1, 3, 1), '1 of 3 workers has it, 1 other does not');
  t.is(textOf(2, 3, 0), '2 of 3 workers have it, 0 others do not');
});

test('files that were set aside on any control plane are listed, and a peer is named', (t) => {
  const own = { ...statusOf({}), setAside: ['/state/a.json.unreadable'] };
  const peer = { ...statusOf({}), setAside: ['/state/a.json.unreadable'] };
  const { setAside: _, ...older } = statusOf({});
  const peers = [
    { url: 'http://peer', value: peer },
    { url: 'http://older', value: older },
  ];
  t.deepEqual(toStatus(own, peers).setAside, [
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
