// All parts of documents that are made from the code.
import { createControlPlaneSections } from '../../control-plane/document-sections.ts';
import { policyKeySection } from '../../control-plane/policy/key-documents.ts';
import { testKeySection } from '../../control-plane/rehearsal/rule-tests/key-documents.ts';
import type { GeneratedSection } from '../../shared/generated-section.ts';
import { adviceSection, ruleKeySection } from '../../shared/rules/schema/key-documents.ts';
import { workerSections } from '../../worker/document-sections.ts';

export const generatedSections: readonly GeneratedSection[] = [
  ruleKeySection,
  adviceSection,
  testKeySection,
  policyKeySection,
  ...workerSections,
  ...(await createControlPlaneSections()),
];
