// All generated parts of documents.
import { policyKeys } from '../../control-plane/authoring/policy/policy-keys.ts';
import { testKeys } from '../../control-plane/authoring/rehearsal/rule-tests/test-keys.ts';
import { advisoryRules, meaningOf, severityOf } from '../../shared/rules/problem/problem-rule.ts';
import { ruleKeys } from '../../shared/rules/rule-keys.ts';
import { createControlPlaneSections } from './control-plane-sections.ts';
import { type GeneratedSection, toTable } from './generated-section.ts';
import { routerSections } from './router-options.ts';
import { workerSections } from './worker-sections.ts';

function toKeySection(
  document: string,
  mark: string,
  keys: readonly (typeof policyKeys | typeof ruleKeys | typeof testKeys)[number][],
): GeneratedSection {
  return {
    document: new URL(`../../${document}`, import.meta.url),
    mark,
    text: toTable(
      ['Key', 'Where', 'Meaning'],
      keys.map(({ name, sections, meaning }) => [`\`${name}\``, sections.join(', '), meaning]),
    ),
  };
}

export const generatedSections: readonly GeneratedSection[] = [
  toKeySection('shared/rules/README.md', 'keys', ruleKeys),
  {
    document: new URL('../../shared/rules/README.md', import.meta.url),
    mark: 'advice',
    text: toTable(
      ['Name', 'Severity', 'Meaning'],
      advisoryRules.map((rule) => [`\`${rule}\``, severityOf(rule), meaningOf(rule)]),
    ),
  },
  toKeySection('control-plane/docs/commands.md', 'test-keys', testKeys),
  toKeySection('control-plane/docs/commands.md', 'policy-keys', policyKeys),
  ...workerSections,
  ...(await createControlPlaneSections()),
  ...routerSections,
];
