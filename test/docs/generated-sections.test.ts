// The generated parts of documents are up to date.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { replaceSection } from './generated-section.ts';
import { generatedSections } from './generated-sections.ts';

const root = join(import.meta.dirname, '..', '..');

for (const { document, mark, text } of generatedSections) {
  const path = relative(root, fileURLToPath(document));
  test(`the ${mark} in ${path} are those of the code`, (t) => {
    t.true(text.split('\n').length > 5, 'the section has content');
    const content = readFileSync(document, 'utf8');
    t.is(replaceSection(content, mark, text), content, 'run npm run docs');
  });
}
