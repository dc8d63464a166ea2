import test from 'ava';
import { type AnswerJson, findDoubts, joinCounters, type OwnCounters } from './counter-answers.ts';

const counter = {
  ...{ descriptor: 0, problem: null, rule: 'd.k', used: 50, limit: 100 },
  ...{ window: 'day', secondsUntilReset: 9, shadowMode: false },
};

function toAnswer(worker: string, used: number, given: Partial<AnswerJson> = {}): AnswerJson {
  return {
    ...{ worker, address: `${worker}:1`, group: 'g', together: 2 },
    ...{ differs: false, problem: null, confirmedBy: null },
    counters: [{ ...counter, used }],
    ...given,
  };
}

const toCounters = (...answers: AnswerJson[]): OwnCounters => ({ answers, notAsked: 0 });
const shownOf = (...all: readonly OwnCounters[]) =>
  joinCounters(all).answers.map(
    ({ worker, together, differs }) => `${worker} of ${together}${differs ? '!' : ''}`,
  );

test('workers that count together are shown as one answer while they agree, allowing for traffic', (t) => {
  t.deepEqual(shownOf(toCounters(toAnswer('a', 50), toAnswer('b', 50))), ['a of 2']);
  t.deepEqual(shownOf(toCounters(toAnswer('a', 0), toAnswer('b', 2))), ['a of 2']);
  t.deepEqual(shownOf(toCounters(toAnswer('a', 900), toAnswer('b', 1_000))), ['a of 2']);
});

test('answers that differ are all shown', (t) => {
  const differing = ['a of 2!', 'b of 2!'];
  const others: readonly Partial<AnswerJson>[] = [
    { counters: [{ ...counter, used: 0 }] },
    { counters: [{ ...counter, used: 60 }] },
    { counters: [{ ...counter, limit: 101 }] },
    { counters: [{ ...counter, window: 'hour' }] },
    { counters: [{ ...counter, rule: 'd.j' }] },
    { counters: [{ ...counter, problem: 'no rule' }] },
    { counters: [] },
    { counters: [], problem: 'no answer' },
  ];
  for (const other of others) {
    t.deepEqual(shownOf(toCounters(toAnswer('a', 50), toAnswer('b', 0, other))), differing);
  }
});

test('the answers of several control planes are compared with each other', (t) => {
  const own = joinCounters([toCounters(toAnswer('a', 5), toAnswer('b', 5))]);
  const peer = joinCounters([
    toCounters(toAnswer('c', 5, { together: 3 }), toAnswer('d', 9, { together: 3 })),
  ]);
  t.deepEqual(shownOf(own, peer), ['a of 5!', 'd of 5!']);
  const alone = toCounters(toAnswer('e', 0, { group: 'e', together: 1 }));
  t.deepEqual(shownOf(own, alone), ['a of 2', 'e of 1']);
});

test('resets of two control planes confirm each other, whatever hits came between them', (t) => {
  const reset = (worker: string, used: number, given: Partial<AnswerJson> = {}) =>
    toCounters(toAnswer(worker, used, { confirmedBy: 'itself', together: 1, ...given }));
  const join = (...all: OwnCounters[]) => ({ ...joinCounters(all), missing: [] });
  const both = join(reset('a', 0), reset('b', 40));
  t.like(both.answers, { length: 1, 0: { worker: 'a', confirmedBy: 'another', together: 2 } });
  t.deepEqual(findDoubts(both), []);
  const doubt = join(reset('a', 0), reset('b', 5, { confirmedBy: null, problem: 'not reset' }));
  t.deepEqual(findDoubts(doubt), [
    'worker a: another worker that shares its counters differs',
    'worker b: not reset',
  ]);
});

test('each counter that may not have been reset is named', (t) => {
  const none = toAnswer('', 0, { counters: [{ ...counter, problem: 'no rule' }] });
  const missing = [{ url: 'http://b', error: 'gone' }];
  t.deepEqual(findDoubts({ ...toCounters(none), notAsked: 2, missing }), [
    'worker :1: no rule',
    '2 workers not asked',
    'peer http://b does not answer (gone)',
  ]);
});
