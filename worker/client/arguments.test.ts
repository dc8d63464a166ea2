import test from 'ava';
import { testScenarios } from '../../test/support/scenarios.ts';
import { toSettingLines } from '../../test/support/setting-lines.ts';
import { parseClientArguments } from './arguments.ts';

function toLines(words: readonly string[]): string[] {
  const parsed = parseClientArguments(words);
  return parsed.kind === 'call' ? toSettingLines(parsed.arguments) : [parsed.kind];
}

const defaults = new Set(toLines([]));

// Proof of migrating.md: Values in the client's `-descriptors` may have equals signs
testScenarios(test, new URL('arguments.txt', import.meta.url), (words) => {
  if (words[0] === 'defaults') return { out: [...defaults].join('\n') };
  const parsed = parseClientArguments(words);
  if (parsed.kind === 'wrong') return { out: '', err: parsed.message, code: 2 };
  const changed = toLines(words).filter((line) => !defaults.has(line));
  return { out: changed.join('\n') };
});
