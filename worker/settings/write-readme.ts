// Writes anew what the worker's documents take from its code: settings, statistics, errors. Run it after
// a change of one; tests compare them.
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../../shared/errors.ts';
import { type GeneratedSection, replaceSection } from '../../shared/generated-section.ts';
import { toMarkdown } from '../../shared/settings/document.ts';
import { settingProofs } from './proofs.ts';
import { workerSections } from './readme-sections.ts';
import { workerTable } from './table.ts';

const settings: GeneratedSection = {
  document: new URL('../README.md', import.meta.url),
  mark: 'settings',
  text: toMarkdown(workerTable, settingProofs),
};

for (const { document, mark, text } of [settings, ...workerSections]) {
  const written = replaceSection(await readFile(document, 'utf8'), mark, text);
  if (written === undefined) {
    throw new AppError('cannot_start', `${document.pathname} has no marks for ${mark}`);
  }
  await writeFile(document, written);
}
