// The sections that documents get from the table of the keys of the policy file.
import { type GeneratedSection, toTable } from '../../shared/generated-section.ts';
import { policyKeys } from './policy-keys.ts';

export const policyKeySection: GeneratedSection = {
  document: new URL('../docs/policies.md', import.meta.url),
  mark: 'policy-keys',
  text: toTable(
    ['Key', 'Where', 'Meaning'],
    policyKeys.map(({ name, sections, meaning }) => [`\`${name}\``, sections.join(', '), meaning]),
  ),
};
