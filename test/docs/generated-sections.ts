// All parts of documents that are made from the code.
import { createControlPlaneSections } from '../../control-plane/document-sections.ts';
import { policyKeys } from '../../control-plane/policy/policy-keys.ts';
import { testKeys } from '../../control-plane/rehearsal/rule-tests/test-keys.ts';
import { type GeneratedSection, toTable } from '../../shared/generated-section.ts';
import { adviceSection, ruleKeySection } from '../../shared/rules/schema/key-documents.ts';
import { workerSections } from '../../worker/document-sections.ts';
import { routerSections } from './router-options.ts';

function toKeySection(
  document: string,
  mark: string,
  keys: readonly (typeof policyKeys | typeof testKeys)[number][],
): GeneratedSection {
  return {
    document: new URL(`../../control-plane/${document}`, import.meta.url),
    mark,
    text: toTable(
      ['Key', 'Where', 'Meaning'],
      keys.map(({ name, sections, meaning }) => [`\`${name}\``, sections.join(', '), meaning]),
    ),
  };
}

export const generatedSections: readonly GeneratedSection[] = [
  ruleKeySection,
  adviceSection,
  toKeySection('docs/commands.md', 'test-keys', testKeys),
  toKeySection('docs/commands.md', 'policy-keys', policyKeys),
  ...workerSections,
  ...(await createControlPlaneSections()),
  ...routerSections,
];
