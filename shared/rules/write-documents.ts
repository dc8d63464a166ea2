// Writes what is made of the keys of a rules document: their table in the guide, and the JSON Schema that
// editors read. Run it after a change of a key; tests compare them.
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../errors.ts';
import { replaceSection } from '../generated-section.ts';
import { formatRuleSchema, ruleKeySection } from './key-documents.ts';

const { document, mark, text } = ruleKeySection;
const guide = replaceSection(await readFile(document, 'utf8'), mark, text);
if (guide === undefined) {
  throw new AppError('cannot_start', `${document.pathname} has no marks for ${mark}`);
}
await writeFile(document, guide);
await writeFile(new URL('rules.schema.json', import.meta.url), formatRuleSchema());
