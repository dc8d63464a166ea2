import test from 'ava';
import { maxMapKeyLength, toMapKey } from './store.ts';

test('a text up to the limit is its own key, and the key of a longer one never exceeds the limit', (t) => {
  const longest = 'x'.repeat(maxMapKeyLength);
  t.is(toMapKey(longest), longest);
  for (const length of [maxMapKeyLength + 1, 17_000, 524_288])
    t.true(toMapKey('x'.repeat(length)).length <= 1024);
});

test('long texts that differ anywhere have different keys, equal ones the same', (t) => {
  const long = 'x'.repeat(17_000);
  const texts = [`a${long}`, `b${long}`, `${long}a`, `${long}b`, `${long}é`, `${long}\u0001`];
  t.is(new Set(texts.map(toMapKey)).size, texts.length);
  t.is(toMapKey(`${long}a`), toMapKey(`${long}a`));
});
