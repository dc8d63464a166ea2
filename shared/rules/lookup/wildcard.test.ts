import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { runAtOnce } from '../../in-slices.ts';
import { createWildcardList, matchesWildcard, parseWildcard } from './wildcard.ts';

/** Tries all possibilities, by the meaning of `*` alone. */
function matchesNaively(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern.startsWith('*')) {
    const rest = pattern.slice(1);
    for (let at = 0; at <= text.length; at++) if (matchesNaively(rest, text.slice(at))) return true;
    return false;
  }
  return text.charAt(0) === pattern.charAt(0) && matchesNaively(pattern.slice(1), text.slice(1));
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 });
const pattern = fc
  .string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  .filter((text) => text.includes('*'));

test('a wildcard matches the same texts as trying all possibilities', (t) => {
  let matched = 0;
  fc.assert(
    fc.property(pattern, letters, (wildcard, text) => {
      const expected = matchesNaively(wildcard, text);
      if (expected) matched++;
      return matchesWildcard(parseWildcard(wildcard), text) === expected;
    }),
    { numRuns: 3000 },
  );
  t.true(matched > 100);
});

test('a long text that almost matches many stars costs little', (t) => {
  const wildcard = parseWildcard(`${'a*'.repeat(1000)}b`);
  const text = `${'a'.repeat(100_000)}c`;
  const start = cpuMs();
  t.false(matchesWildcard(wildcard, `${text}b`.slice(0, -1)));
  t.true(matchesWildcard(wildcard, `${text}b`));
  t.true(cpuMs() - start < 5000);
});

const toRules = (patterns: readonly string[]) =>
  patterns.map((pattern) => ({ rule: { pattern }, wildcard: parseWildcard(pattern) }));

const letter = fc.constantFrom('a', 'b', 'c', '\u{1f600}', '\ud83d');
const listed = fc
  .tuple(fc.string({ unit: letter, maxLength: 4 }), fc.string({ unit: letter, maxLength: 2 }))
  .map(([before, after]) => `${before}*${after}`);

test('the first matching wildcard is found, as if all were tried in order', (t) => {
  const found = { one: 0, none: 0, notTheLongest: 0 };
  fc.assert(
    fc.property(
      fc.array(listed, { minLength: 1, maxLength: 40 }),
      fc.array(fc.string({ unit: letter, maxLength: 8 }), { minLength: 1, maxLength: 10 }),
      (patterns, texts) => {
        const rules = toRules(patterns);
        const find = runAtOnce(createWildcardList(rules));
        for (const text of texts) {
          const matching = rules.filter(({ wildcard }) => matchesWildcard(wildcard, text));
          if (find?.(text) !== matching[0]?.rule) return false;
          if (matching[0] === undefined) found.none++;
          else found.one++;
          const length = matching[0]?.wildcard.prefix.length ?? 0;
          if (matching.some(({ wildcard }) => wildcard.prefix.length > length))
            found.notTheLongest++;
        }
        return true;
      },
    ),
    { numRuns: 2000 },
  );
  t.true(found.one > 1000 && found.none > 1000 && found.notTheLongest > 100);
});

test('rules without a wildcard make no list', (t) => {
  t.is(runAtOnce(createWildcardList([])), undefined);
});

test('one of 100,000 wildcards is found without trying the others', (t) => {
  const patterns = Array.from({ length: 100_000 }, (_, index) => `path_/tenant/${index}/*`);
  const find = runAtOnce(createWildcardList(toRules(patterns)));
  const startMs = cpuMs();
  for (let round = 0; round < 10_000; round++) {
    const tenant = (round * 7919) % 100_000;
    if (find?.(`path_/tenant/${tenant}/orders`)?.pattern !== `path_/tenant/${tenant}/*`)
      t.fail(`the rule of tenant ${tenant} was not found`);
    if (find?.(`path_/tenant/${tenant}x`) !== undefined) t.fail(`${tenant}x was found`);
  }
  // Trying each would take a minute.
  t.true(cpuMs() - startMs < 5_000);
});

test('prefixes that extend each other are tried without reading the text again', (t) => {
  const patterns = Array.from({ length: 3_000 }, (_, index) => `${'a'.repeat(index)}*b`);
  const find = runAtOnce(createWildcardList(toRules(patterns)));
  const startMs = cpuMs();
  for (let round = 0; round < 100; round++) t.is(find?.(`${'a'.repeat(2_999)}c`), undefined);
  t.true(cpuMs() - startMs < 5_000);
});
