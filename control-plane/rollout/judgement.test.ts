import test from 'ava';
import { judge, since, sum } from './judgement.ts';

const quiet = { decisions: 1_000, overLimit: 0, errors: 0 };

test('errors may be one point above those of the others', (t) => {
  t.is(judge({ ...quiet, errors: 10 }, quiet, 10).kind, 'good');
  t.is(judge({ ...quiet, errors: 11 }, quiet, 10).kind, 'bad');
  t.is(judge({ ...quiet, errors: 111 }, { ...quiet, errors: 100 }, 10).kind, 'good');
});

test('the share over limit may be ten points above, or three times as large', (t) => {
  const over = (count: number) => ({ ...quiet, overLimit: count });
  t.is(judge(over(100), over(0), 10).kind, 'good');
  t.is(judge(over(101), over(0), 10).kind, 'bad');
  t.is(judge(over(700), over(300), 10).kind, 'good');
  t.is(judge(over(130), over(25), 10).kind, 'bad');
  t.is(judge(over(75), over(25), 10).kind, 'good');
  t.is(judge(over(51), over(0), 5).kind, 'bad');
});

test('fewer than a hundred decisions on either side say nothing', (t) => {
  const few = { decisions: 99, overLimit: 99, errors: 0 };
  t.deepEqual(judge(few, quiet, 10), {
    kind: 'silent',
    text: '99 decisions with it, 1000 without: fewer than 100',
  });
  t.is(judge(quiet, few, 10).kind, 'silent');
});

test('figures of a time are the difference of two looks, also across a restart of the worker', (t) => {
  const before = { decisions: 100, overLimit: 10, errors: 1 };
  const now = { decisions: 150, overLimit: 30, errors: 1 };
  t.deepEqual(since(before, now), { decisions: 50, overLimit: 20, errors: 0 });
  t.deepEqual(since(now, before), before);
  t.deepEqual(since(undefined, now), now);
  t.deepEqual(sum([before, now]), { decisions: 250, overLimit: 40, errors: 2 });
});
