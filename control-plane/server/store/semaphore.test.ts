import test from 'ava';
import { SharedSemaphore } from './semaphore.ts';

test('a caller has its share of the slots, and leaves the others to other callers', async (t) => {
  const slots = new SharedSemaphore(3, 2);
  const over = AbortSignal.abort();
  const acquire = (caller?: string) => slots.acquire(new AbortController().signal, caller);
  const first = await acquire('a');
  await acquire('a');
  const third = acquire('a');
  const other = await acquire('b');
  await t.throwsAsync(slots.acquire(over, 'c'), { name: 'AbortError' });
  await first[Symbol.asyncDispose]();
  const again = await third;
  const waiting = acquire();
  await again[Symbol.asyncDispose]();
  await waiting;
  await other[Symbol.asyncDispose]();
  t.truthy(await acquire('a'), 'a place that was given back');
});
