import test from 'ava';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import type { InForceState, SnapshotState } from '../snapshot/snapshot-state.ts';
import {
  emptyRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  withInForce,
  withVerdict,
} from './record.ts';
import { noMemory, remember, type ToRemember } from './remembering.ts';

const revisionOf = (id: string) => ({ id, atMs: 0, author: undefined, message: undefined });
const inForceOf = (id: string, isAtOnce: boolean): InForceState => ({
  revision: revisionOf(id),
  sinceMs: 0,
  content: `content of ${id}`,
  isAtOnce,
  mayRemove: false,
  domains: [],
  served: { domains: 0, limits: 0, fewer: [], fewerInAll: 0 },
  nodeGroups: [],
  groups: [],
  leftOut: [],
});
const held = 'held back: no domain would be left';
const newestOf = (id: string, isHeldBack = false): NonNullable<SnapshotState['newest']> => ({
  revision: revisionOf(id),
  content: `content of ${id}`,
  valid: !isHeldBack,
  isHeldBack,
  isWaiting: false,
  saidBefore: undefined,
  problems: isHeldBack ? [problemOf('error', 'large-removal', '(all files)', held)] : [],
});
const onRecord = (...ids: readonly string[]) =>
  ids.reduce<RolloutRecord>(
    (record, id) =>
      withInForce(
        record,
        { revision: id, content: `content of ${id}` },
        { reason: '', by: '', atMs: 0 },
      ),
    emptyRecord,
  );
const taken = {
  revision: 'x',
  content: 'content of x',
  outcome: 'taken_back',
  reason: 'errors',
  by: '',
  atMs: 0,
} as const;
const open: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 0,
  chosen: [],
  whole: [],
  reason: '',
};

interface Given {
  readonly rollsOut?: boolean;
  readonly isTold?: boolean;
  readonly inForce?: InForceState | undefined;
  readonly newest?: SnapshotState['newest'];
  readonly record?: RolloutRecord;
}

/** Revision a is in force and newest, and was given to all at once. */
function createHarness({
  rollsOut = true,
  isTold = false,
  record = emptyRecord,
  ...given
}: Given = {}) {
  let memory = noMemory;
  const known = { record, trouble: undefined as string | undefined, leads: true };
  const harness = {
    known,
    inForce: 'inForce' in given ? given.inForce : inForceOf('a', true),
    newest: 'newest' in given ? given.newest : newestOf('a'),
    withdrawn: undefined as SnapshotState['withdrawn'],
    isWritable: true,
    /** The record that others write just before. */
    meanwhile: undefined as RolloutRecord | undefined,
    writes: 0,
    /** The writes into the state directory alone. */
    kept: 0,
    givenWay: [] as string[],
    /** A look: what is in force on record then, the newest first. */
    look(): string {
      const remembered = remember(memory, {
        rollsOut,
        isTold,
        snapshots: toState(harness),
        record: known.record,
        leads: known.leads,
        mayWrite: known.trouble === undefined,
        wallMs: 1_000_000_000_000,
      });
      memory = remembered.memory;
      remembered.effects.forEach(perform);
      return known.record.inForce.map(({ revision }) => revision).join();
    },
  };
  function perform(each: ToRemember): void {
    if (each.kind === 'give_way') {
      harness.givenWay.push(`${each.open.revision} ${each.newest}`);
      return;
    }
    if (each.kind === 'write') known.record = harness.meanwhile ?? known.record;
    const changed = each.change(known.record);
    if (each.kind === 'keep_here') harness.kept++;
    else if (changed !== undefined && harness.isWritable) harness.writes++;
    else {
      if (each.isInForce) memory = { ...memory, noted: undefined };
      return;
    }
    known.record = changed ?? known.record;
  }
  return harness;
}

function toState(given: Pick<SnapshotState, 'newest' | 'inForce' | 'withdrawn'>): SnapshotState {
  const { newest, inForce, withdrawn } = given;
  const revision = undefined;
  const store = { reachable: true, lastSuccessMs: 0, failingSinceMs: undefined };
  return {
    store: { ...store, lastError: undefined, revision },
    ...{ newest, inForce, trial: undefined, withdrawn, stale: undefined },
    counts: { accepted: 0, refused: 0, takenBack: 0 },
  };
}

test('a revision that everybody was given at once is put on record, once', (t) => {
  const harness = createHarness();
  t.is(harness.look(), 'a');
  t.is(harness.look(), 'a');
  t.is(harness.writes, 1);
  harness.inForce = inForceOf('b', true);
  harness.newest = newestOf('c');
  t.is(harness.look(), 'b,a', 'also where something newer has come since');
});

test('a revision on record is not written again', (t) => {
  const harness = createHarness({ record: onRecord('a') });
  t.is(harness.look(), 'a');
  t.is(harness.writes, 0);
});

test('a revision that others put on record at the same moment is not written again', (t) => {
  const harness = createHarness();
  harness.meanwhile = onRecord('a');
  t.is(harness.look(), 'a');
  t.is(harness.writes, 0);
});

test('a revision that others have brought into force since stays on record', (t) => {
  const harness = createHarness();
  harness.look();
  harness.known.record = onRecord('a', 'b');
  t.is(harness.look(), 'b,a');
  t.is(harness.writes, 1);
});

test('a revision that could not be written is written with the next tick', (t) => {
  const harness = createHarness();
  harness.isWritable = false;
  t.is(harness.look(), '');
  harness.isWritable = true;
  t.is(harness.look(), 'a');
});

test('while the record is in trouble nothing is written', (t) => {
  const harness = createHarness();
  harness.known.trouble = 'it cannot be read';
  t.is(harness.look(), '');
  t.is(harness.writes, 0);
  harness.known.trouble = undefined;
  t.is(harness.look(), 'a');
});

test('a revision taken over from the record or an earlier process is put on record where it is the newest', (t) => {
  const inForce = inForceOf('a', false);
  t.is(createHarness({ inForce, newest: newestOf('b') }).look(), '');
  t.is(createHarness({ inForce }).look(), 'a');
});

test('while nothing is in force there is nothing to put on record', (t) => {
  const harness = createHarness({ inForce: undefined, newest: undefined });
  t.is(harness.look(), '');
  t.is(harness.writes, 0);
});

test('without a rollout the record is kept where there is one', (t) => {
  t.is(createHarness({ rollsOut: false }).look(), '');
  t.is(createHarness({ rollsOut: false, record: onRecord('z') }).look(), 'a,z');
  const record = withVerdict(emptyRecord, taken);
  t.is(createHarness({ rollsOut: false, record }).look(), 'a');
});

test('a revision that is held back is put on record with its reason, once, after the one in force', (t) => {
  const harness = createHarness({ newest: newestOf('b', true) });
  t.is(harness.look(), 'a');
  t.deepEqual(harness.known.record.verdicts, []);
  harness.look();
  t.is(harness.writes, 2);
  harness.look();
  const { revision, outcome, reason } = harness.known.record.verdicts[0] ?? {};
  t.deepEqual([revision, outcome, reason], ['b', 'held_back', held]);
  t.is(harness.writes, 2);
});

test('a revision that is in force on record is not held back by a control plane that has just followed', (t) => {
  const newest = newestOf('a', true);
  const harness = createHarness({ newest, inForce: inForceOf('a', false), record: onRecord('a') });
  harness.look();
  t.deepEqual([harness.writes, harness.known.record.verdicts], [0, []]);
});

test('a revision that is held back again, for the rules it would remove of another one, is put on record anew', (t) => {
  const before = {
    revision: 'r',
    content: 'content of b',
    outcome: 'held_back',
    reason: held,
    by: '',
    atMs: 1,
  } as const;
  const recordWith = (against: string) => withVerdict(onRecord('a'), { ...before, against });
  for (const [against, writes] of [
    ['content of a', 0],
    ['content of z', 1],
  ] as const) {
    const harness = createHarness({ newest: newestOf('b', true), record: recordWith(against) });
    harness.look();
    t.is(harness.writes, writes);
    t.like(harness.known.record.verdicts[0], { outcome: 'held_back', against: 'content of a' });
  }
});

test('with the first that is held back, what was in force before is put on record', (t) => {
  const newest = newestOf('b', true);
  const inForce = inForceOf('a', false);
  t.is(createHarness({ rollsOut: false, inForce, newest }).look(), 'a');
  t.is(createHarness({ inForce, newest, record: onRecord('z') }).look(), 'z');
  t.is(createHarness({ inForce: undefined, newest }).look(), '');
});

test('an open rollout gives way where its revision was withdrawn here', (t) => {
  const record = { ...onRecord('a'), rollout: open };
  const harness = createHarness({ record });
  harness.look();
  t.deepEqual(harness.givenWay, []);
  harness.withdrawn = { revision: 'new', by: 'a' };
  harness.look();
  t.deepEqual(harness.givenWay, ['new a']);
});

const shown = ({ record: { outcomes = [] } }: { record: RolloutRecord }) =>
  outcomes.map(({ revisions, kind, reason }) => `${revisions} ${kind} ${reason}`.trim());

test('without a rollout what was in force since when stays in the state directory', (t) => {
  const harness = createHarness({ rollsOut: false });
  harness.look();
  harness.look();
  harness.inForce = { ...inForceOf('b', true), sinceMs: 7 };
  harness.newest = newestOf('b');
  harness.look();
  t.deepEqual(shown(harness.known), ['b in_force', 'a in_force']);
  t.is(harness.known.record.outcomes?.[0]?.atMs, 7);
  t.deepEqual([harness.writes, harness.kept], [0, 2]);
});

test('a revision that changes nothing for the workers is in force with those before it', (t) => {
  const harness = createHarness();
  harness.look();
  harness.inForce = { ...inForceOf('b', true), content: 'content of a', sinceMs: 9 };
  harness.newest = { ...newestOf('b'), content: 'content of a' };
  harness.look();
  harness.look();
  t.deepEqual(shown(harness.known), ['b,a in_force']);
  t.is(harness.known.record.outcomes?.[0]?.atMs, 0);
  t.is(harness.writes, 2);
});

test('an earlier revision that a control plane behind the others still has is not in force again with a later one that has its rules', (t) => {
  const same = { content: 'content of a' };
  const [first, second, third] = [
    { revision: 'a', ...same },
    { revision: 'b', content: 'content of b' },
    { revision: 'c', ...same },
  ];
  const word = { reason: '', by: '' };
  const record = [first, second, third].reduce<RolloutRecord>(
    (before, now, index) => withInForce(before, now, { ...word, atMs: index }),
    emptyRecord,
  );
  const harness = createHarness({ record });
  harness.look();
  t.deepEqual(shown(harness.known), ['c in_force', 'b in_force', 'a in_force']);
  t.is(harness.writes, 0);
});

const invalid = {
  ...newestOf('b'),
  content: undefined,
  valid: false,
  problems: [
    { ...problemOf('error', 'other', 'a.yaml', 'no unit'), line: 4, column: 25 },
    problemOf('error', 'other', 'b.yaml', 'no limit'),
    problemOf('warning', 'other', 'c.yaml', 'is old'),
  ],
};

test('an invalid revision is put on record with its errors, once', (t) => {
  const harness = createHarness({ newest: invalid });
  harness.look();
  harness.look();
  harness.look();
  t.deepEqual(shown(harness.known), [
    'b invalid a.yaml:4:25: no unit (and 1 more error)',
    'a in_force',
  ]);
  t.is(harness.writes, 2);
});

test('each invalid revision is put on record once, in order, however long the record could not be written', (t) => {
  const harness = createHarness({ newest: invalid, record: onRecord('a') });
  harness.known.trouble = 'no route to it';
  harness.look();
  harness.newest = { ...invalid, revision: newestOf('c').revision };
  for (let looks = 0; looks < 100; looks++) harness.look();
  harness.known.trouble = undefined;
  for (let looks = 0; looks < 3; looks++) harness.look();
  t.deepEqual(
    shown(harness.known).map((line) => line.slice(0, 9)),
    ['c invalid', 'b invalid', 'a in_forc'],
  );
});

test('while a rollout is led elsewhere an invalid revision is put on record there', (t) => {
  const harness = createHarness({ newest: invalid, record: { ...onRecord('a'), rollout: open } });
  harness.known.leads = false;
  harness.look();
  t.is(harness.writes, 0);
  harness.known.leads = true;
  harness.look();
  t.is(harness.writes, 1);
});

test('a revision that is held back is put on record by one of the control planes', (t) => {
  const harness = createHarness({ newest: newestOf('b', true), record: onRecord('a') });
  const verdict = {
    ...taken,
    revision: 'b',
    content: 'content of b',
    outcome: 'held_back',
  } as const;
  harness.meanwhile = withVerdict(onRecord('a'), verdict);
  harness.look();
  t.is(harness.writes, 0);
});
