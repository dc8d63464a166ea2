import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { testScenarios } from '../../test/support/scenarios.ts';
import { toSettingLines } from '../../test/support/setting-lines.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { parseMapping, readMappingFile } from './mapping-file.ts';
import { createMetricMapper } from './metric-mapping.ts';

// Proof of migrating.md: Mistakes in a mapping file end the start, all reported at once with line and column
testScenarios(test, new URL('mapping-file.txt', import.meta.url), ([command, name], { folder }) => {
  const { mapping, problems } = parseMapping(
    readFileSync(join(folder, 'm.yaml'), 'utf8'),
    'm.yaml',
  );
  const lines = mapping === undefined ? [] : toSettingLines(mapping);
  if (command === 'read') return { out: lines.join('\n'), err: formatProblems(problems) };
  return { out: (mapping && createMetricMapper(mapping)(name ?? '', 'gauge')?.name) ?? 'none' };
});

test('a file is read, its warnings are logged and its errors end the start', async (t) => {
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'm.yaml');
  const log = createRecordedLog();

  await writeFile(file, 'mappings: [{match: a.b, name: a, ttl_: 5s}]');
  const mapping = await readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log);
  t.is(mapping?.rules.length, 1);
  t.is(log.lines.length, 1);
  t.true(log.lines[0]?.includes(`${file}:1:34: ttl_ has no effect here`));

  await writeFile(file, 'mappings:\n  - match: a.b\n  - name: c\n');
  const error = await t.throwsAsync(readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log), {
    instanceOf: AppError,
  });
  t.is(error?.code, 'cannot_start');
  t.true(error?.message.includes(`${file}:2:5: error: the metric's name is missing`));
  t.true(error?.message.includes(`${file}:3:5: error: the pattern to match is missing`));
  t.true(error?.message.includes('PROMETHEUS_MAPPER_YAML'));

  await rm(file);
  await mkdir(file);
  const directory = await t.throwsAsync(readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log), {
    instanceOf: AppError,
  });
  t.is(directory?.code, 'cannot_start');
  t.regex(directory?.message ?? '', /^the mapping file .*m\.yaml cannot be read \(EISDIR/);
});

test('a missing mapping file is a warning, and no mapping', async (t) => {
  const log = createRecordedLog();
  t.is(await readMappingFile('/nowhere/m.yaml', 'PROMETHEUS_MAPPER_YAML', log), undefined);
  t.deepEqual(log.lines, [
    'warning PROMETHEUS_MAPPER_YAML: there is no file /nowhere/m.yaml; the default mapping is used',
  ]);
});
