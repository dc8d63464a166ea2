import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { matchesGlob } from './glob.ts';

test('a glob matches as the regular expression with the same meaning', (t) => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.'), maxLength: 8 });
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 8 });
  fc.assert(
    fc.property(letters, texts, (pattern, text) => {
      const source = pattern.replaceAll('.', '\\.').replaceAll('?', '.').replaceAll('*', '.*');
      return matchesGlob(pattern, text) === new RegExp(`^${source}$`).test(text);
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

test('a hostile pattern takes no time', (t) => {
  const beganMs = cpuMs();
  t.false(matchesGlob('*a'.repeat(500), `${'a'.repeat(5_000)}b`));
  // The patterns of a policy on a few domains.
  for (let count = 0; count < 10_000; count++) {
    t.false(matchesGlob(`*${'a'.repeat(500)}b`, 'a'.repeat(1_000)));
  }
  t.true(cpuMs() - beganMs < 5_000);
});
