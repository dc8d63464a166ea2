// The expected texts next to fixtures of rules. `{keys of PLACE}` in them is replaced by the table's keys, so that a
// new key does not change unrelated texts.
import { readFileSync } from 'node:fs';
import { keysAt, type Section } from '../../shared/rules/rule-keys.ts';
import { listOf } from '../../shared/rules/yaml/map-reader.ts';

const sections = ['document', 'descriptor', 'rate_limit', 'lease', 'replaces'] as const;
export const allKeys: ReadonlySet<string> = new Set(sections.flatMap(keysAt));

/** `path`: that of the fixture, which ends in `.yaml`. */
export function readExpectedText(path: string | URL): string {
  const text = readFileSync(
    typeof path === 'string'
      ? path.replace(/yaml$/, 'txt')
      : new URL(path.href.replace(/yaml$/, 'txt')),
    'utf8',
  );
  return text.replaceAll(/\{keys of (.*?)\}/g, (_, section: string) =>
    listOf(section === 'all places' ? [...allKeys] : keysAt(section as Section)),
  );
}
