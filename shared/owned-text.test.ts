import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { owned } from './owned-text.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const count = 200;
const bodyLength = 100_000;

/** The number of characters that stay in memory when a part of each of many large texts is retained. */
function bytesOf(store: (part: string) => string): number {
  const stored = new Map<string, number>();
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < count; index++) {
    const body = Buffer.alloc(bodyLength, `a value of the body ${index} `).toString('latin1');
    stored.set(store(body.slice(0, 40)), index);
  }
  collectGarbage();
  const held = process.memoryUsage().heapUsed - before;
  return stored.size === count ? held : Number.NaN;
}

test.serial('an owned part of a text, or one joined from parts, retains nothing else', (t) => {
  t.true(bytesOf((part) => part) > (count * bodyLength) / 2, 'the engine keeps the whole text');
  t.true(bytesOf((part) => `key_${part}_end`) > (count * bodyLength) / 2, 'also in joined texts');
  t.true(bytesOf(owned) < (count * bodyLength) / 10);
  t.true(bytesOf((part) => owned(`key_${part}_€`)) < (count * bodyLength) / 10);
});

test('an owned text equals the original', (t) => {
  for (const text of ['', 'a', 'ä€😀', '\ud800', 'x'.repeat(100)]) t.is(owned(text), text);
});
