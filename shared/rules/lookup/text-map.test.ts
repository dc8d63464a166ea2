import test from 'ava';
import fc from 'fast-check';
import { type TextMap, withRoom } from './text-map.ts';

function mapOf(entries: readonly (readonly [string, number])[]): TextMap<number> {
  let map: TextMap<number> = new Map();
  for (const [text, value] of entries) {
    map = withRoom(map);
    map.set(text, value);
  }
  return map;
}

test('a map of many texts has the same entries as a Map', (t) => {
  const numbers = fc.array(fc.nat(199_999), { minLength: 90_000, maxLength: 120_000 });
  fc.assert(
    fc.property(numbers, (texts) => {
      const all = texts.map((each, at) => [`d0-${each}`, at] as const);
      const expected = new Map(all);
      const map = mapOf(all);
      t.false(map instanceof Map);
      t.is(map.size, expected.size);
      for (const [text, value] of expected) if (map.get(text) !== value) t.fail(text);
      t.is(map.get('none of them'), undefined);
    }),
    { numRuns: 5 },
  );
});

test('a small map is a Map', (t) => {
  t.true(mapOf(Array.from({ length: 1_000 }, (_, at) => [`${at}`, at])) instanceof Map);
});

test('adding an entry never moves many others, however many there are', (t) => {
  const { set } = Map.prototype;
  const largest = { size: 0 };
  Map.prototype.set = function (key, value) {
    set.call(this, key, value);
    largest.size = Math.max(largest.size, this.size);
    return this;
  };
  try {
    const map = mapOf(Array.from({ length: 200_000 }, (_, at) => [`${at}`, at]));
    t.is(map.size, 200_000);
  } finally {
    Map.prototype.set = set;
  }
  t.is(largest.size, 32_768);
});
