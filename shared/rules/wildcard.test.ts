import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { matchesWildcard, parseWildcard } from './wildcard.ts';

/** Tries every way, by the meaning of `*` alone. */
function matchesNaively(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern.startsWith('*')) {
    const rest = pattern.slice(1);
    for (let at = 0; at <= text.length; at++) {
      if (matchesNaively(rest, text.slice(at))) return true;
    }
    return false;
  }
  return text.charAt(0) === pattern.charAt(0) && matchesNaively(pattern.slice(1), text.slice(1));
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 });
const pattern = fc
  .string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  .filter((text) => text.includes('*'));

test('a wildcard matches what trying every way matches', (t) => {
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

const cases: [pattern: string, text: string, matches: boolean][] = [
  ['img_*', 'img_', true],
  ['img_*', 'img', false],
  ['/v1/*/edit', '/v1//edit', true],
  ['/v1/*/edit', '/v1/edit', false],
  ['/v1/*/edit', '/v1/9/edit/', false],
  ['aba*aba', 'ababa', false],
  ['aba*aba', 'abaaba', true],
  ['a*bc*c', 'abc', false],
  ['x**y', 'xy', true],
  ['*', '', true],
  ['a.b+(c)*[d]', 'axbb(c)[d]', false],
];
for (const [wildcard, text, expected] of cases) {
  test(`'${wildcard}' ${expected ? 'matches' : 'does not match'} '${text}'`, (t) => {
    t.is(matchesWildcard(parseWildcard(wildcard), text), expected);
  });
}

test('a long text that almost matches many stars costs little', (t) => {
  const wildcard = parseWildcard(`${'a*'.repeat(1000)}b`);
  const text = `${'a'.repeat(100_000)}c`;
  const start = cpuMs();
  t.false(matchesWildcard(wildcard, `${text}b`.slice(0, -1)));
  t.true(matchesWildcard(wildcard, `${text}b`));
  t.true(cpuMs() - start < 5000);
});
