import test from 'ava';
import { mergeHistories, mergeSeries, toHistoryJson } from './history-json.ts';

test('the slots of several control planes add up by their time', (t) => {
  const one = toHistoryJson([
    { atMs: 0, decisions: 1, overLimit: 1, errors: 0 },
    { atMs: 5_000, decisions: 2, overLimit: 0, errors: 0 },
  ]);
  const other = toHistoryJson([{ atMs: 5_000, decisions: 5, overLimit: 1, errors: 1 }]);
  t.deepEqual(mergeHistories([one, other]).slots, [
    { at: '1970-01-01T00:00:00.000Z', decisions: 1, overLimit: 1, errors: 0 },
    { at: '1970-01-01T00:00:05.000Z', decisions: 7, overLimit: 1, errors: 1 },
  ]);
});

test('the series of a rule add up, and others stay apart', (t) => {
  const series = (rule: string, hits: number[]) => ({ rule, hits, overLimit: [0], nearLimit: [1] });
  t.deepEqual(mergeSeries([series('a', [1, 2]), series('b', [1]), series('a', [3, 4])]), [
    { rule: 'a', hits: [4, 6], overLimit: [0], nearLimit: [2] },
    { rule: 'b', hits: [1], overLimit: [0], nearLimit: [1] },
  ]);
});
