// Writes the settings tables of the worker's README anew. Run it after a change of the table; a
// test compares the two.
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../../shared/errors.ts';
import { replaceSettings } from '../../shared/settings/document.ts';
import { settingProofs } from './proofs.ts';
import { workerTable } from './table.ts';

const path = new URL('../README.md', import.meta.url);
const readme = replaceSettings(await readFile(path, 'utf8'), workerTable, settingProofs);
if (readme === undefined) {
  throw new AppError('cannot_start', 'worker/README.md has no marks for the settings');
}
await writeFile(path, readme);
