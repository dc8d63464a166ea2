// The sections that documents get from the table of the keys of rule tests.
import { type GeneratedSection, toTable } from '../../../shared/generated-section.ts';
import { testKeys } from './test-keys.ts';

export const testKeySection: GeneratedSection = {
  document: new URL('README.md', import.meta.url),
  mark: 'test-keys',
  text: toTable(
    ['Key', 'Where', 'Meaning'],
    testKeys.map(({ name, sections, meaning }) => [`\`${name}\``, sections.join(', '), meaning]),
  ),
};
