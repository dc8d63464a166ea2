// Writes what documents take from the code: settings, commands, routes and metrics in the control plane's
// README, and the description of its admin API, which `npm run fix` then brings into form. Run it after
// a change of one; tests compare them.
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../../shared/errors.ts';
import { replaceSection } from '../../shared/generated-section.ts';
import { bearer } from '../../shared/router/guard.ts';
import { toMarkdown } from '../../shared/settings/document.ts';
import { createAdminApp } from '../admin/admin-app.ts';
import { createControlPlaneSections } from './readme-sections.ts';
import { controlPlaneTable } from './table.ts';

const readme = new URL('../README.md', import.meta.url);
const settings = { document: readme, mark: 'settings', text: toMarkdown(controlPlaneTable) };

for (const { document, mark, text } of [settings, ...(await createControlPlaneSections())]) {
  const written = replaceSection(await readFile(document, 'utf8'), mark, text);
  if (written === undefined) {
    throw new AppError('cannot_start', `${document.pathname} has no marks for ${mark}`);
  }
  await writeFile(document, written);
}

const app = await createAdminApp({ api: undefined, guard: bearer() });
const description = `${JSON.stringify(app.describe(), undefined, 2)}\n`;
await writeFile(new URL('../admin/openapi.json', import.meta.url), description);
