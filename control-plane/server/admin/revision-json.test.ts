import test from 'ava';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import type { OutcomeOnRecord, Outcomes } from '../record/outcomes.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { toRevisionOutcomes } from './revision-json.ts';

type Present = Pick<SnapshotState, 'newest' | 'inForce' | 'trial'>;

const revision = (id: string) => ({ id, atMs: 0, author: undefined, message: undefined });
const nothing: Present = { newest: undefined, inForce: undefined, trial: undefined };
const newest = (id: string, more: Partial<NonNullable<Present['newest']>> = {}) => ({
  revision: revision(id),
  content: 'x',
  valid: true,
  isHeldBack: false,
  isWaiting: false,
  earlierVerdict: undefined,
  problems: [],
  ...more,
});
const inForce = (id: string, sinceMs: number) =>
  ({ revision: revision(id), sinceMs }) as NonNullable<Present['inForce']>;
const outcome = (
  id: string,
  kind: OutcomeOnRecord['kind'],
  atMs: number,
  reason = '',
  by = '',
) => ({ revisions: id.split(','), content: id, ...{ kind, atMs, reason, by } });
const shown = (ids: string, state: Partial<Present>, outcomes: Outcomes) =>
  toRevisionOutcomes(ids.split('').map(revision), { ...nothing, ...state }, outcomes).map(
    (each) =>
      each &&
      [each.kind, each.since, each.until, each.by, each.reason]
        .filter((text) => text !== null)
        .join(' ')
        .replaceAll(/1970-01-01T00:00:0(\d)\.000Z/g, '$1'),
  );
const record = [
  outcome('e', 'invalid', 6_000, 'a.yaml:1:2: no unit'),
  outcome('d', 'in_force', 5_000, 'step 1 did as well'),
  outcome('c', 'taken_back', 4_000, 'errors 9 %', 'ada'),
  outcome('b,a', 'in_force', 1_000),
];

test('a list has the outcome of each revision, its times, its actor and its reason', (t) => {
  const state = {
    newest: newest('e', { valid: false, content: undefined }),
    inForce: inForce('d', 9_000),
  };
  t.deepEqual(shown('edcba', state, record), [
    'invalid 6 a.yaml:1:2: no unit',
    'in_force 5 step 1 did as well',
    'taken_back 4 ada errors 9 %',
    'was_in_force 1 5',
    'was_in_force 1 5',
  ]);
  const late = [outcome('x', 'taken_back', 1e300)];
  t.deepEqual(shown('x', {}, late), ['taken_back 9999-12-31T23:59:59.999Z']);
});

test('a revision that no worker received was never served, and the outcome of one older than the record is unknown', (t) => {
  t.deepEqual(shown('dxcbaz', { inForce: inForce('d', 9_000) }, record).slice(1), [
    'never_served',
    'taken_back 4 ada errors 9 %',
    'was_in_force 1 5',
    'was_in_force 1 5',
    null,
  ]);
  t.deepEqual(shown('xz', {}, []), [null, null]);
});

test('a state that returns has a separate outcome each time', (t) => {
  const outcomes = [
    outcome('a', 'in_force', 3_000),
    outcome('b', 'in_force', 2_000),
    ...record.slice(3),
  ];
  t.deepEqual(shown('aba', { inForce: inForce('a', 3_000) }, outcomes), [
    'in_force 3',
    'was_in_force 2 3',
    'was_in_force 1 2',
  ]);
  const invalid = [outcome('b', 'in_force', 2_000), outcome('e', 'invalid', 1_000)];
  t.deepEqual(shown('ebe', {}, invalid), ['invalid 1', 'was_in_force 2', 'invalid 1']);
});

test('the present outcome of a revision is shown before it is on record', (t) => {
  const trial = { revision: revision('c'), sinceMs: 7_000 } as NonNullable<Present['trial']>;
  const held = newest('d', {
    valid: false,
    isHeldBack: true,
    problems: [problemOf('error', 'large-removal', '(all files)', 'held back: all limits')],
  });
  t.deepEqual(shown('dcb', { newest: held, trial, inForce: inForce('b', 8_000) }, []), [
    'held_back held back: all limits',
    'on_trial 7',
    'in_force 8',
  ]);
  t.deepEqual(shown('d', { newest: newest('d', { isWaiting: true }) }, []), ['waits']);
  t.deepEqual(shown('d', { newest: newest('d', { valid: false, content: undefined }) }, []), [
    'invalid',
  ]);
  t.deepEqual(
    shown('b', { inForce: inForce('b', 8_000) }, [outcome('x', 'in_force', 2_000), ...record]),
    ['in_force 8'],
  );
});
