// Tests the order of the parts of one request, with stores that the test controls.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { createHit, startCounting } from '../../test/support/counting.ts';
import { countInParts, type Part } from './count-in-parts.ts';
import type { CountRequest } from './store.ts';

function setUp(count: number, mode: CountRequest['mode'] = 'add') {
  const begun: { index: number; request: CountRequest }[] = [];
  const hits = Array.from({ length: count }, (_, index) =>
    createHit({ key: `k${index}`, limit: 10 }),
  );
  const parts = hits.map(
    (hit, index): Part => ({ hits: [hit], count: (request) => begun.push({ index, request }) }),
  );
  const { request, result } = startCounting(hits, { mode });
  const begunIndexes = () => begun.map(({ index }) => index);
  const answer = (index: number, after: number, error?: AppError) => {
    for (const hit of begun[index]?.request.hits ?? []) hit.after = after;
    begun[index]?.request.settle(error);
  };
  return { begun, parts, request, result, begunIndexes, answer };
}

test('serially, a part begins when the previous one is counted', async (t) => {
  const { parts, request, result, begunIndexes, answer } = setUp(3);
  countInParts(request, parts, { parallelism: 1, continuesOnError: false });
  t.deepEqual(begunIndexes(), [0]);
  answer(0, 1);
  t.deepEqual(begunIndexes(), [0, 1]);
  answer(1, 2);
  answer(2, 3);
  t.deepEqual((await result).after, [1, 2, 3]);
});

test('no more parts are in progress than the parallelism allows', async (t) => {
  const { parts, request, result, begunIndexes, answer } = setUp(4);
  countInParts(request, parts, { parallelism: 2, continuesOnError: false });
  t.deepEqual(begunIndexes(), [0, 1]);
  answer(1, 2);
  t.deepEqual(begunIndexes(), [0, 1, 2]);
  answer(0, 1);
  answer(2, 3);
  answer(3, 4);
  t.deepEqual((await result).after, [1, 2, 3, 4]);
});

test('after a failure no further part begins, and the failure is reported once', async (t) => {
  const { parts, request, result, begunIndexes, answer } = setUp(4);
  countInParts(request, parts, { parallelism: 2, continuesOnError: false });
  answer(0, 1, new AppError('store', 'broken'));
  answer(1, 2, new AppError('store', 'broken too'));
  t.is((await result).error?.message, 'broken');
  t.deepEqual(begunIndexes(), [0, 1]);
});

test('all parts are read before any counts, and then only hits over the limit count', async (t) => {
  const { begun, parts, request, result, answer } = setUp(2, 'add-unless-over');
  countInParts(request, parts, { parallelism: 1, continuesOnError: false });
  answer(0, 3);
  answer(1, 10);
  t.deepEqual(
    begun.map((one) => one.request.mode),
    ['peek', 'peek', 'add'],
  );
  answer(2, 3);
  answer(3, 11);
  t.deepEqual(
    begun.slice(2).map((one) => one.request.hits.map(({ hits }) => hits)),
    [[0], [1]],
  );
  t.deepEqual((await result).after, [3, 11]);
});

test('a caller that cancels the request cancels every part', (t) => {
  const { begun, parts, request } = setUp(2);
  countInParts(request, parts, { parallelism: 2, continuesOnError: false });
  request.cancelled = true;
  t.true(begun.every((one) => one.request.cancelled));
});

test('with continuesOnError, all parts are counted and the failure is reported at the end', async (t) => {
  const { parts, request, result, begunIndexes, answer } = setUp(3);
  countInParts(request, parts, { parallelism: 1, continuesOnError: true });
  answer(0, -1, new AppError('store', 'broken'));
  answer(1, 2);
  answer(2, 3);
  t.deepEqual(begunIndexes(), [0, 1, 2]);
  const { error, after } = await result;
  t.is(error?.message, 'broken');
  t.deepEqual(after, [-1, 2, 3]);
});
