// All parts of documents that are made from the code.
import { createControlPlaneSections } from '../../control-plane/document-sections.ts';
import type { GeneratedSection } from '../../shared/generated-section.ts';
import { adviceSection, ruleKeySection } from '../../shared/rules/key-documents.ts';
import { workerSections } from '../../worker/document-sections.ts';

export const generatedSections: readonly GeneratedSection[] = [
  ruleKeySection,
  adviceSection,
  ...workerSections,
  ...(await createControlPlaneSections()),
];
