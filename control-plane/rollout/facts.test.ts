import test from 'ava';
import type { PeerAnswer } from '../peers/peers.ts';
import { type RolloutFacts, toPeerFacts, type WorkerFacts } from './facts.ts';

const expected = { revision: 'new', limits: [0.5], next: 'newer' };
const worker: WorkerFacts = {
  id: 'w',
  name: "'w'",
  pool: 0,
  state: 'refused',
  refusal: 'bad unit',
  traffic: null,
};

function answer(facts: Partial<RolloutFacts>): PeerAnswer<RolloutFacts> {
  const following = { trial: 'new', inForce: 'old', limits: [0.5], record: 'r', workers: [worker] };
  return { url: 'http://b', value: { ...following, ...facts } };
}

test('workers of a peer that follows the step count as they are', (t) => {
  t.deepEqual(toPeerFacts([answer({})], expected), {
    workers: [worker],
    passed: [],
    unknown: undefined,
  });
  t.is(
    toPeerFacts([answer({ trial: null, inForce: 'new', limits: [] })], expected).unknown,
    undefined,
  );
});

for (const [what, facts] of [
  ['another share', { limits: [0.2] }],
  ['another revision', { trial: 'other' }],
  ['no revision on trial', { trial: null }],
] as const) {
  test(`of a peer with ${what} nothing is known, and its workers have refused nothing`, (t) => {
    const { workers, unknown } = toPeerFacts([answer(facts)], expected);
    t.is(unknown, 'waits for peer http://b to follow this step');
    t.deepEqual(workers, [{ ...worker, state: 'pending', refusal: null }]);
  });
}

test('a peer that is past the revision has workers to compare with, and is not waited for', (t) => {
  const { workers, passed, unknown } = toPeerFacts(
    [answer({ trial: 'newer', limits: [] })],
    expected,
  );
  t.deepEqual([workers.length, passed.length, unknown], [0, 1, undefined]);
});

test('a peer without an answer is named, with the workers that it had', (t) => {
  const away = { url: 'http://b', error: 'HTTP 503' };
  t.is(
    toPeerFacts([{ ...away, last: undefined }], expected).unknown,
    'waits for peer http://b, which gives no answer (HTTP 503): it is unknown for its workers',
  );
  t.regex(toPeerFacts([answer({}), { ...away, last: 1 }], expected).unknown ?? '', /its 1 worker$/);
});
