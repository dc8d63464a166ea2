// Writes the generated parts of documents: `npm run docs`. Tests in this folder compare them.
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { formatPolicySchema } from '../../control-plane/authoring/policy/policy-keys.ts';
import { formatTestSchema } from '../../control-plane/authoring/rehearsal/rule-tests/test-keys.ts';
import { formatRuleSchema } from '../../control-plane/authoring/schema/json-schema.ts';
import { createAdminApp } from '../../control-plane/server/admin/admin-app.ts';
import { formatNodeGroupsSchema } from '../../control-plane/server/snapshot/node-groups.ts';
import { AppError } from '../../shared/errors.ts';
import { bearer } from '../../shared/router/guard.ts';
import { withSettings } from './chart-settings.ts';
import { replaceSection } from './generated-section.ts';
import { generatedSections } from './generated-sections.ts';
import { drawWindowEdge } from './window-edge-picture.ts';

const inProject = (path: string) => new URL(`../../${path}`, import.meta.url);

for (const { document, mark, text } of generatedSections) {
  const written = replaceSection(await readFile(document, 'utf8'), mark, text);
  if (written === undefined) {
    throw new AppError('cannot_start', `${document.pathname} has no marks for ${mark}`);
  }
  await writeFile(document, written);
}

// Biome, which the script runs next, formats the following files.
await writeFile(
  inProject('control-plane/authoring/policy/policy.schema.json'),
  formatPolicySchema(),
);
await writeFile(
  inProject('control-plane/server/snapshot/node-groups.schema.json'),
  formatNodeGroupsSchema(),
);
await writeFile(inProject('shared/rules/rules.schema.json'), formatRuleSchema());
await writeFile(
  inProject('control-plane/authoring/rehearsal/rule-tests/rule-tests.schema.json'),
  formatTestSchema(),
);
const adminApp = await createAdminApp({ api: undefined, guard: bearer() });
const description = `${JSON.stringify(adminApp.describe(), undefined, 2)}\n`;
await writeFile(inProject('control-plane/server/admin/openapi.json'), description);
await writeFile(inProject('shared/rules/window-edge.svg'), await drawWindowEdge());

const valuesSchema = inProject('compose/helm/ratelane/values.schema.json');
await writeFile(valuesSchema, withSettings(await readFile(valuesSchema, 'utf8')));

const chart = 'compose/helm/ratelane/files';
const observability = 'compose/observability';
await copyFile(inProject(`${observability}/alerts.yaml`), inProject(`${chart}/alerts.yaml`));
await copyFile(
  inProject(`${observability}/grafana/dashboards/ratelane.json`),
  inProject(`${chart}/dashboard.json`),
);
