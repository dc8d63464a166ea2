// What documents and editors get from the table of rule keys.
import { type GeneratedSection, toTable } from '../generated-section.ts';
import { createRuleSchema } from './json-schema.ts';
import { ruleKeys } from './rule-keys.ts';

export const ruleKeySection: GeneratedSection = {
  document: new URL('README.md', import.meta.url),
  mark: 'keys',
  text: toTable(
    ['Key', 'Where', 'Meaning'],
    ruleKeys.map(({ name, places, meaning }) => [`\`${name}\``, places.join(', '), meaning]),
  ),
};

/** The text of rules.schema.json, which `schema` prints. */
export function formatRuleSchema(): string {
  return `${JSON.stringify(createRuleSchema(), undefined, 2)}\n`;
}
