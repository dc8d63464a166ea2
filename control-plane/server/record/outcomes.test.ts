import test from 'ava';
import { type NewOutcome, type Outcomes, withOutcome } from './outcomes.ts';

const outcome = (revision: string, kind: NewOutcome['kind'], more: Partial<NewOutcome> = {}) => ({
  revision,
  content: kind === 'invalid' ? '' : `content of ${revision}`,
  kind,
  atMs: 1,
  reason: '',
  by: '',
  ...more,
});
const after = (...all: readonly NewOutcome[]) => all.reduce<Outcomes>(withOutcome, []);
const shown = (all: Outcomes) => all.map(({ revisions, kind }) => `${revisions} ${kind}`);

test('a later outcome of the same try takes the place of the earlier one', (t) => {
  const approved = after(
    outcome('a', 'in_force'),
    outcome('b', 'held_back'),
    outcome('b', 'in_force'),
  );
  t.deepEqual(shown(approved), ['b in_force', 'a in_force']);
  const later = withOutcome(approved, outcome('b', 'taken_back'));
  t.deepEqual(shown(later), ['b taken_back', 'b in_force', 'a in_force']);
});

test('a revision that comes again after another one keeps what it came to before', (t) => {
  const all = after(outcome('a', 'taken_back'), outcome('b', 'in_force'), outcome('a', 'in_force'));
  t.deepEqual(shown(all), ['a in_force', 'b in_force', 'a taken_back']);
});

test('revisions with the same content are in force together, five of them', (t) => {
  const same = { content: 'same' };
  const ids = ['1', '2', '3', '4', '5', '6', '2'];
  const all = after(...ids.map((id) => outcome(id, 'in_force', same)));
  t.deepEqual(shown(all), ['2,6,5,4,3 in_force']);
});

test('the last fifty are kept, with the beginning of their reasons', (t) => {
  const ids = Array.from({ length: 60 }, (_, index) => `${index}`);
  const all = after(...ids.map((id) => outcome(id, 'invalid', { reason: 'x'.repeat(400) })));
  t.is(all.length, 50);
  t.is(all[0]?.revisions[0], '59');
  t.is(all[0]?.reason, `${'x'.repeat(299)}…`);
});
