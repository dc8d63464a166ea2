// Damages good samples: texts, bytes and JSON values get parts cut, repeated, swapped or inserted.
import type { Random } from '../support/random.ts';
import dictionary from './dictionary.json' with { type: 'json' };

/** Names and values with an unexpected meaning for some program. */
export const strangeWords: readonly string[] = dictionary.strange;

/** `words` are the tokens of the text's language. */
export function damageText(random: Random, text: string, words: readonly string[]): string {
  let damaged = text;
  for (let left = random.pick([1, 1, 2, 3, 5]); left > 0; left--)
    damaged = damageOnce(random, damaged, words);
  return damaged;
}

function damageOnce(random: Random, text: string, words: readonly string[]): string {
  const at = random.below(text.length + 1);
  const length = random.below(random.pick([2, 10, 100]));
  const piece = text.slice(at, at + length);
  switch (random.below(8)) {
    case 0:
      return text.slice(0, at) + text.slice(at + length);
    case 1:
      return text.slice(0, at) + piece.repeat(random.pick([2, 2, 50])) + text.slice(at + length);
    case 2:
      return text.slice(0, at) + random.pick(strangeWords) + text.slice(at);
    case 3:
      return text.slice(0, at) + random.pick(strangeWords) + text.slice(at + length);
    case 4: {
      const to = random.below(text.length + 1);
      return text.slice(0, to) + piece + text.slice(to);
    }
    case 5:
      return text.slice(0, at);
    default:
      return text.slice(0, at) + random.pick(words) + text.slice(at + random.below(3));
  }
}

export function damageBytes(random: Random, bytes: Buffer): Buffer {
  let damaged = Buffer.from(bytes);
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(damaged.length + 1);
    const end = Math.min(damaged.length, at + random.below(random.pick([2, 8, 40])));
    const before = damaged.subarray(0, at);
    const piece = damaged.subarray(at, end);
    const after = damaged.subarray(end);
    switch (random.below(6)) {
      case 0:
        damaged = Buffer.concat([before, after]);
        break;
      case 1:
        damaged = Buffer.concat([before, piece, piece, after]);
        break;
      case 2:
        damaged = Buffer.concat([before, random.bytes(1 + random.below(8)), piece, after]);
        break;
      case 3:
        damaged = Buffer.from(before);
        break;
      default:
        if (at < damaged.length)
          damaged[at] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.below(256)]);
    }
  }
  return damaged;
}

const strangeValues: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  2 ** 32,
  2 ** 53,
  '',
  [],
  {},
  [[]],
  [null],
  'x'.repeat(3000),
];

/** A JSON value with some of its members changed, renamed, repeated or removed. */
export function damageJson(random: Random, value: unknown, depth = 0): unknown {
  if (depth > 0 && random.chance(0.08))
    return random.chance(0.5) ? random.pick(strangeValues) : random.pick(strangeWords);
  if (Array.isArray(value)) {
    const items = value.map((item) => damageJson(random, item, depth + 1));
    if (random.chance(0.05)) items.splice(random.below(items.length + 1), 1);
    if (random.chance(0.05) && items.length > 0) items.push(random.pick(items));
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    if (random.chance(0.04)) return [];
    const newName = random.chance(0.04) ? random.pick(strangeWords) : name;
    return [[newName, damageJson(random, member, depth + 1)]];
  });
  if (random.chance(0.06)) members.push([random.pick(strangeWords), random.pick(strangeValues)]);
  return Object.fromEntries(members);
}
