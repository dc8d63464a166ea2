import test from 'ava';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { InForceState, SnapshotState } from '../snapshot/snapshot-state.ts';
import {
  emptyRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  withInForce,
  withVerdict,
} from './record.ts';
import type { ChangeRecord } from './record-state.ts';
import { createRemembering } from './remembering.ts';

const revisionOf = (id: string) => ({ id, atMs: 0, author: undefined, message: undefined });
const inForceOf = (id: string, isAtOnce: boolean): InForceState => ({
  revision: revisionOf(id),
  sinceMs: 0,
  content: `content of ${id}`,
  isAtOnce,
  mayRemove: false,
  domains: [],
  limitCount: 0,
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
  const known = {
    record,
    trouble: undefined as string | undefined,
    leads: true,
    keepHere(change: ChangeRecord) {
      known.record = change(known.record) ?? known.record;
      harness.kept++;
    },
  };
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
    async look(): Promise<string> {
      remembering.remember(true);
      await Promise.resolve();
      await Promise.resolve();
      return known.record.inForce.map(({ revision }) => revision).join();
    },
  };
  const remembering = createRemembering({
    rollsOut,
    isTold,
    snapshots: {
      state: () => ({
        store: {
          reachable: true,
          lastSuccessMs: 0,
          failingSinceMs: undefined,
          lastError: undefined,
          revision: undefined,
        },
        newest: harness.newest,
        inForce: harness.inForce,
        trial: undefined,
        withdrawn: harness.withdrawn,
        stale: undefined,
        counts: { accepted: 0, refused: 0, takenBack: 0 },
      }),
    },
    keeper: known,
    async write(change) {
      known.record = harness.meanwhile ?? known.record;
      const changed = change(known.record);
      if (changed === undefined || !harness.isWritable) return false;
      harness.writes++;
      known.record = changed;
      return true;
    },
    giveWay: async ({ revision }, newest) => void harness.givenWay.push(`${revision} ${newest}`),
    clock: createManualClock(),
  });
  return harness;
}

test('a revision that everybody was given at once is put on record, once', async (t) => {
  const harness = createHarness();
  t.is(await harness.look(), 'a');
  t.is(await harness.look(), 'a');
  t.is(harness.writes, 1);
  harness.inForce = inForceOf('b', true);
  harness.newest = newestOf('c');
  t.is(await harness.look(), 'b,a', 'also where something newer has come since');
});

test('a revision on record is not written again', async (t) => {
  const harness = createHarness({ record: onRecord('a') });
  t.is(await harness.look(), 'a');
  t.is(harness.writes, 0);
});

test('a revision that others put on record at the same moment is not written again', async (t) => {
  const harness = createHarness();
  harness.meanwhile = onRecord('a');
  t.is(await harness.look(), 'a');
  t.is(harness.writes, 0);
});

test('a revision that others have brought into force since stays on record', async (t) => {
  const harness = createHarness();
  await harness.look();
  harness.known.record = onRecord('a', 'b');
  t.is(await harness.look(), 'b,a');
  t.is(harness.writes, 1);
});

test('a revision that could not be written is written with the next tick', async (t) => {
  const harness = createHarness();
  harness.isWritable = false;
  t.is(await harness.look(), '');
  harness.isWritable = true;
  t.is(await harness.look(), 'a');
});

test('while the record is in trouble nothing is written', async (t) => {
  const harness = createHarness();
  harness.known.trouble = 'it cannot be read';
  t.is(await harness.look(), '');
  t.is(harness.writes, 0);
  harness.known.trouble = undefined;
  t.is(await harness.look(), 'a');
});

test('a revision taken over from the record or an earlier process is put on record where it is the newest', async (t) => {
  const inForce = inForceOf('a', false);
  t.is(await createHarness({ inForce, newest: newestOf('b') }).look(), '');
  t.is(await createHarness({ inForce }).look(), 'a');
});

test('while nothing is in force there is nothing to put on record', async (t) => {
  const harness = createHarness({ inForce: undefined, newest: undefined });
  t.is(await harness.look(), '');
  t.is(harness.writes, 0);
});

test('without a rollout the record is kept where there is one', async (t) => {
  t.is(await createHarness({ rollsOut: false }).look(), '');
  t.is(await createHarness({ rollsOut: false, record: onRecord('z') }).look(), 'a,z');
  const record = withVerdict(emptyRecord, taken);
  t.is(await createHarness({ rollsOut: false, record }).look(), 'a');
});

test('a revision that is held back is put on record with its reason, once, after the one in force', async (t) => {
  const harness = createHarness({ newest: newestOf('b', true) });
  t.is(await harness.look(), 'a');
  t.deepEqual(harness.known.record.verdicts, []);
  await harness.look();
  t.is(harness.writes, 2);
  await harness.look();
  const { revision, outcome, reason } = harness.known.record.verdicts[0] ?? {};
  t.deepEqual([revision, outcome, reason], ['b', 'held_back', held]);
  t.is(harness.writes, 2);
});

test('a revision that is in force on record is not held back by a control plane that has just followed', async (t) => {
  const newest = newestOf('a', true);
  const harness = createHarness({ newest, inForce: inForceOf('a', false), record: onRecord('a') });
  await harness.look();
  t.deepEqual([harness.writes, harness.known.record.verdicts], [0, []]);
});

test('a revision that is held back again, for the rules it would remove of another one, is put on record anew', async (t) => {
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
    await harness.look();
    t.is(harness.writes, writes);
    t.like(harness.known.record.verdicts[0], { outcome: 'held_back', against: 'content of a' });
  }
});

test('with the first that is held back, what was in force before is put on record', async (t) => {
  const newest = newestOf('b', true);
  const inForce = inForceOf('a', false);
  t.is(await createHarness({ rollsOut: false, inForce, newest }).look(), 'a');
  t.is(await createHarness({ inForce, newest, record: onRecord('z') }).look(), 'z');
  t.is(await createHarness({ inForce: undefined, newest }).look(), '');
});

test('an open rollout gives way where nothing is rolled out, or where its revision was withdrawn here', async (t) => {
  const record = { ...onRecord('a'), rollout: open };
  const without = createHarness({ record, rollsOut: false });
  await without.look();
  t.deepEqual(without.givenWay, ['new a']);
  const harness = createHarness({ record });
  await harness.look();
  t.deepEqual(harness.givenWay, []);
  harness.withdrawn = { revision: 'new', by: 'a' };
  await harness.look();
  t.deepEqual(harness.givenWay, ['new a']);
});

const shown = ({ record: { outcomes = [] } }: { record: RolloutRecord }) =>
  outcomes.map(({ revisions, kind, reason }) => `${revisions} ${kind} ${reason}`.trim());

test('without a rollout what was in force since when stays in the state directory', async (t) => {
  const harness = createHarness({ rollsOut: false });
  await harness.look();
  await harness.look();
  harness.inForce = { ...inForceOf('b', true), sinceMs: 7 };
  harness.newest = newestOf('b');
  await harness.look();
  t.deepEqual(shown(harness.known), ['b in_force', 'a in_force']);
  t.is(harness.known.record.outcomes?.[0]?.atMs, 7);
  t.deepEqual([harness.writes, harness.kept], [0, 2]);
});

test('a revision that changes nothing for the workers is in force with those before it', async (t) => {
  const harness = createHarness();
  await harness.look();
  harness.inForce = { ...inForceOf('b', true), content: 'content of a', sinceMs: 9 };
  harness.newest = { ...newestOf('b'), content: 'content of a' };
  await harness.look();
  await harness.look();
  t.deepEqual(shown(harness.known), ['b,a in_force']);
  t.is(harness.known.record.outcomes?.[0]?.atMs, 0);
  t.is(harness.writes, 2);
});

test('an earlier revision that a control plane behind the others still has is not in force again with a later one that has its rules', async (t) => {
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
  await harness.look();
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

test('an invalid revision is put on record with its errors, once', async (t) => {
  const harness = createHarness({ newest: invalid });
  await harness.look();
  await harness.look();
  await harness.look();
  t.deepEqual(shown(harness.known), [
    'b invalid a.yaml:4:25: no unit (and 1 more error)',
    'a in_force',
  ]);
  t.is(harness.writes, 2);
});

test('each invalid revision is put on record once, in order, however long the record could not be written', async (t) => {
  const harness = createHarness({ newest: invalid, record: onRecord('a') });
  harness.known.trouble = 'no route to it';
  await harness.look();
  harness.newest = { ...invalid, revision: newestOf('c').revision };
  for (let looks = 0; looks < 100; looks++) await harness.look();
  harness.known.trouble = undefined;
  for (let looks = 0; looks < 3; looks++) await harness.look();
  t.deepEqual(
    shown(harness.known).map((line) => line.slice(0, 9)),
    ['c invalid', 'b invalid', 'a in_forc'],
  );
});

test('while a rollout is led elsewhere an invalid revision is put on record there', async (t) => {
  const harness = createHarness({ newest: invalid, record: { ...onRecord('a'), rollout: open } });
  harness.known.leads = false;
  await harness.look();
  t.is(harness.writes, 0);
  harness.known.leads = true;
  await harness.look();
  t.is(harness.writes, 1);
});

test('a revision that is held back is put on record by one of the control planes', async (t) => {
  const harness = createHarness({ newest: newestOf('b', true), record: onRecord('a') });
  const verdict = {
    ...taken,
    revision: 'b',
    content: 'content of b',
    outcome: 'held_back',
  } as const;
  harness.meanwhile = withVerdict(onRecord('a'), verdict);
  await harness.look();
  t.is(harness.writes, 0);
});
