// The sections that documents and editors get from the table of rule keys, and the guide from the kinds of
// problems.
import { type GeneratedSection, toTable } from '../../generated-section.ts';
import { advisoryRules, meaningOf, severityOf } from '../problem/problem-rule.ts';
import { ruleKeys } from '../rule-keys.ts';
import { createRuleSchema } from './json-schema.ts';

export const ruleKeySection: GeneratedSection = {
  document: new URL('../README.md', import.meta.url),
  mark: 'keys',
  text: toTable(
    ['Key', 'Where', 'Meaning'],
    ruleKeys.map(({ name, sections, meaning }) => [`\`${name}\``, sections.join(', '), meaning]),
  ),
};

export const adviceSection: GeneratedSection = {
  document: new URL('../README.md', import.meta.url),
  mark: 'advice',
  text: toTable(
    ['Name', 'Severity', 'Meaning'],
    advisoryRules.map((rule) => [`\`${rule}\``, severityOf(rule), meaningOf(rule)]),
  ),
};

/** The text of rules.schema.json, which `schema` prints. */
export function formatRuleSchema(): string {
  return `${JSON.stringify(createRuleSchema(), undefined, 2)}\n`;
}
