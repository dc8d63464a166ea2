// Writes what documents take from the code: the settings in the control plane's README, and the
// description of its admin API, which `npm run fix` then brings into form. Run it after a change of
// either; tests compare them.
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../../shared/errors.ts';
import { bearer } from '../../shared/router/guard.ts';
import { replaceSettings } from '../../shared/settings/document.ts';
import { createAdminApp } from '../admin/admin-app.ts';
import { controlPlaneTable } from './table.ts';

const path = new URL('../README.md', import.meta.url);
const readme = replaceSettings(await readFile(path, 'utf8'), controlPlaneTable);
if (readme === undefined) {
  throw new AppError('cannot_start', 'control-plane/README.md has no marks for the settings');
}
await writeFile(path, readme);

const app = await createAdminApp({ api: undefined, guard: bearer() });
const description = `${JSON.stringify(app.describe(), undefined, 2)}\n`;
await writeFile(new URL('../admin/openapi.json', import.meta.url), description);
