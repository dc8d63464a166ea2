// The guide to tests of rules is correct: each of its examples is run, and the command's output is compared literally.
// The schema rejects what the command refuses.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import test from 'ava';
import { parse } from 'yaml';
import { formatTestSchema } from '../../control-plane/authoring/rehearsal/rule-tests/test-keys.ts';
import { runInProcess } from '../support/command-run.ts';
import { findFencedBlocks } from '../support/fenced-blocks.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const isValid = new Ajv({ allErrors: true, strictTypes: false }).compile(
  JSON.parse(formatTestSchema()),
);
const toData = (text: string) => JSON.parse(JSON.stringify(parse(text)));

const [, guide = ''] =
  /^## Testing rules$(.*?)^## /ms.exec(read('control-plane/docs/commands.md')) ?? [];
const blocks = findFencedBlocks(guide);
const examples = blocks.filter(({ language }) => language === 'yaml');

for (const example of examples) {
  test(`the example at line ${example.line} is as in the guide`, async (t) => {
    const folder = createTemporaryFolder(t);
    writeFileSync(join(folder, 'example_test.yaml'), example.text);
    const { code, out } = await runInProcess(['test', folder]);
    const next = blocks[blocks.indexOf(example) + 1];
    if (next?.language === 'text') t.is(out.replaceAll(`${folder}/`, ''), next.text);
    else t.is(code, 0, out);
    t.true(isValid(toData(example.text)), JSON.stringify(isValid.errors));
  });
}

test('the stored schema of tests is the one that the code generates', (t) => {
  const stored = JSON.parse(
    read('control-plane/authoring/rehearsal/rule-tests/rule-tests.schema.json'),
  );
  t.deepEqual(stored, JSON.parse(formatTestSchema()), 'run npm run docs');
});

test('each sample of tests names the schema, and is valid by it', (t) => {
  const names = readdirSync(new URL('../../compose/rule-tests', import.meta.url));
  t.true(names.length > 1);
  for (const name of names) {
    const text = read(`compose/rule-tests/${name}`);
    t.regex(text, /^# yaml-language-server: \$schema=\S+\/rule-tests\.schema\.json$/m);
    t.true(isValid(toData(text)), `${name}: ${JSON.stringify(isValid.errors)}`);
  }
});

for (const name of [
  'misspelt-keys',
  'no-mapping',
  'no-name',
  'no-rules',
  'no-tests',
  'empty-tests',
  'statistics',
  'worker-settings',
  'wrong-values',
]) {
  test(`the schema of tests agrees with the command on ${name}`, (t) => {
    t.false(isValid(toData(read(`test/fixtures/rule-tests/bad/${name}.yaml`))));
  });
}
