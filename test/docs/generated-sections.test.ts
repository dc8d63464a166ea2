// What documents take from the code is what the code says now.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import test from 'ava';
import { createControlPlaneSections } from '../../control-plane/settings/readme-sections.ts';
import { replaceSection } from '../../shared/generated-section.ts';
import { ruleKeySection } from '../../shared/rules/key-documents.ts';
import { workerSections } from '../../worker/settings/readme-sections.ts';

for (const { document, mark, text } of [
  ruleKeySection,
  ...workerSections,
  ...(await createControlPlaneSections()),
]) {
  test(`the ${mark} in ${basename(document.pathname)} are those of the code`, (t) => {
    t.true(text.split('\n').length > 5, 'there is something to tell');
    const content = readFileSync(document, 'utf8');
    t.is(replaceSection(content, mark, text), content, 'run npm run generate');
  });
}
