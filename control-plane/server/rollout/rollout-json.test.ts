import test from 'ava';
import type { Outcomes } from '../record/outcomes.ts';
import type { VerdictOnRecord } from '../record/record.ts';
import { toLastVerdictJson } from './rollout-json.ts';

const word = (outcome: VerdictOnRecord['outcome']): VerdictOnRecord => ({
  ...{ revision: 'a', content: 'c', outcome, reason: 'errors', by: '', atMs: 2_000 },
});
const inForce = (revision: string, atMs: number): Outcomes[number] => ({
  ...{ revisions: [revision], content: 'd', kind: 'in_force', atMs, reason: 'as good', by: '' },
});

test('the last rollout is the one taken back only until another revision is in force', (t) => {
  const last = (verdicts: readonly VerdictOnRecord[], outcomes: Outcomes) => {
    const { revision, outcome } = toLastVerdictJson({ verdicts, outcomes }) ?? {};
    return [revision, outcome];
  };
  const takenBack = [word('taken_back')];
  t.deepEqual(last([], [inForce('b', 3_000)]), [undefined, undefined]);
  t.deepEqual(last(takenBack, []), ['a', 'taken_back']);
  t.deepEqual(last(takenBack, [inForce('b', 1_000)]), ['a', 'taken_back'], 'it was before');
  t.deepEqual(last(takenBack, [inForce('b', 3_000)]), ['b', 'in_force']);
  t.deepEqual(last([word('approved')], [inForce('a', 3_000)]), ['a', 'approved'], 'the same one');
});
