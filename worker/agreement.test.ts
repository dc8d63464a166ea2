// The settings that workers sharing a store must have in common, as reviewed lines: agreement.txt.
import test from 'ava';
import { testLines } from '../test/support/reviewed-lines.ts';
import { toAgreement } from './agreement.ts';
import { parseWorkerSettings } from './settings.ts';

/** `text` has the form `NAME=VALUE NAME='VALUE'`. */
function agreementOf(text: string) {
  const words = [...text.matchAll(/(\w+)=(?:'([^']*)'|(\S+))/g)];
  const result = parseWorkerSettings(
    Object.fromEntries(words.map(([, name, quoted, plain]) => [name, quoted ?? plain])),
  );
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return toAgreement(result.settings);
}

/** With one worker's settings, its agreement; with two, the differences. */
testLines(test, new URL('agreement.txt', import.meta.url), (given, t) => {
  const [one, other] = given.split('; ').map(agreementOf);
  if (one === undefined) return t.fail('there is no digest');
  t.is(one.number, Number(`0x${one.hash}`));
  if (other === undefined) return [one.hash, ...one.parts].join('; ');
  if (one.hash === other.hash) {
    t.deepEqual(one, other);
    return 'the same';
  }
  const [left, right] = [new Set(one.parts), new Set(other.parts)];
  const only = [left.difference(right), right.difference(left)].map((parts) =>
    [...parts].join('; '),
  );
  return only.map((parts) => parts || 'nothing').join(' <> ');
});
