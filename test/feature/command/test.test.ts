// Tests the test command: on the samples, on a file for each kind of mistake, and on failing expectations.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseXml, XmlElement } from '@rgrove/parse-xml';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { testScenarios } from '../../support/scenarios.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const inProject = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const badFolder = inProject('test/fixtures/rule-tests/bad');
const failing = inProject('test/fixtures/rule-tests/failing/answers_test.yaml');
const samples = inProject('compose/rule-tests');

function writeTest(folder: string, text: string, name = 'a_test.yaml'): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const customers =
  'rules: {domain: shop, descriptors: [{key: customer, rate_limit: {unit: minute, requests_per_unit: 3}}]}\n';

test('the samples pass, and reach each limit of the sample rules', async (t) => {
  const { code, out } = await runInProcess(['test', samples, '--coverage']);
  t.is(code, 0);
  const shown = out.replaceAll(samples, 'compose/rule-tests');
  t.is(
    shown,
    `compose/rule-tests/mail_test.yaml: 2 tests passed
compose/rule-tests/shop_test.yaml: 4 tests passed

coverage: 6 of 6 limits reached

2 files, 6 tests: all passed
`,
  );
});

for (const name of readdirSync(badFolder).filter((each) => each.endsWith('.yaml'))) {
  test(`a file with ${name.slice(0, -5)} is reported with position and hint, and not run`, async (t) => {
    const file = join(badFolder, name);
    const expected = readFileSync(file.replace(/yaml$/, 'txt'), 'utf8');
    const { code, out } = await runInProcess(['test', file]);
    t.is(code, 1);
    t.is(out.replaceAll(`${badFolder}/`, ''), expected);
  });
}

test('each failing expectation is reported at its position', async (t) => {
  const { code, out } = await runInProcess(['test', failing]);
  t.is(code, 1);
  const expected = readFileSync(failing.replace(/yaml$/, 'txt'), 'utf8');
  t.is(out.replaceAll(failing, 'answers_test.yaml'), expected);
});

test('--update writes the actual values, and changes nothing else', async (t) => {
  const file = join(createTemporaryFolder(t), 'answers_test.yaml');
  copyFileSync(failing, file);
  const before = readFileSync(file, 'utf8').split('\n');
  const updated = await runInProcess(['test', file, '--update']);
  t.is(updated.code, 0);
  t.regex(updated.out, /^1 file, 3 tests: 17 values updated$/m);
  const after = readFileSync(file, 'utf8').split('\n');
  const changed = after.filter((line, index) => line !== before[index]);
  t.is(after.length, before.length);
  t.deepEqual(changed.slice(0, 2), [
    '      - {descriptor: {customer: ada}, code: OK, remaining: 2, reset: 1m, rule: shop.customer, metric_key: shop.customer}',
    '        code: OK',
  ]);
  t.is((await runInProcess(['test', file])).code, 0);
});

testScenarios(test, new URL('test.txt', import.meta.url), ([command = '', ...words]) =>
  command === 'cat'
    ? { out: readFileSync(words[0] ?? '', 'utf8') }
    : runInProcess([command, ...words]),
);

/** From the schema for JUnit XML that the xUnit plugin of Jenkins publishes (junit-10): the allowed content of an
 * element, and its attributes; those with a `!` are required. */
const junitSchema: Readonly<Record<string, { holds: string; attributes: string }>> = {
  testsuites: { holds: 'testsuite', attributes: 'name time tests failures errors' },
  testsuite: {
    holds: 'testsuite properties testcase system-out system-err',
    attributes:
      'name! tests! failures! errors! group time skipped timestamp hostname id package file log url',
  },
  testcase: {
    holds:
      'skipped error failure rerunFailure rerunError flakyFailure flakyError system-out system-err',
    attributes: 'name! time classname group',
  },
  failure: { holds: '', attributes: 'type message' },
  error: { holds: '', attributes: 'type message' },
};

function checkJunit(t: ExecutionContext, element: XmlElement): void {
  const { holds = '', attributes = '' } = junitSchema[element.name] ?? {};
  const names = attributes.split(' ');
  for (const name of names.filter((each) => each.endsWith('!'))) {
    t.true(name.slice(0, -1) in element.attributes, `${element.name} has ${name}`);
  }
  for (const [name, value] of Object.entries(element.attributes)) {
    t.true(names.includes(name) || names.includes(`${name}!`), `${element.name} may have ${name}`);
    if (name === 'time') t.regex(value, /^\d+\.\d+$/);
  }
  for (const child of element.children) {
    if (!(child instanceof XmlElement)) continue;
    t.true(holds.split(' ').includes(child.name), `${element.name} may hold ${child.name}`);
    checkJunit(t, child);
  }
}

test('JUnit XML conforms to its schema, whatever the names are', async (t) => {
  const folder = createTemporaryFolder(t);
  const odd = `${customers}tests:\n  - {name: "a <b> & \\"c\\"\\u0001\\n]]>", domain: shop, requests: [{descriptor: {customer: ada}, remaining: 7}]}\n`;
  const files = [failing, join(badFolder, 'no-name.yaml'), writeTest(folder, odd), samples];
  const { code, out } = await runInProcess(['test', ...files, '--format', 'junit']);
  t.is(code, 1);
  const root = parseXml(out).root;
  if (root === null) return t.fail('there is no element');
  t.is(root.name, 'testsuites');
  t.like(root.attributes, { tests: '11', failures: '3', errors: '1' });
  checkJunit(t, root);
});

// A fifth of a second on a busy machine: ten times as long would mean a different complexity.
test.serial('a thousand tests take only a moment', async (t) => {
  const tests = Array.from(
    { length: 1_000 },
    (_, index) => `  - name: case ${index}
    domain: shop
    requests:
      - {descriptor: {customer: c${index}}, times: 3, code: OK, remaining: 0, reset: 60s}
      - {descriptor: {customer: c${index}}, at: 59s, code: OVER_LIMIT, rule: shop.customer}
    statistics: {shop.customer: {total_hits: 4, over_limit: 1}}
`,
  );
  const file = writeTest(createTemporaryFolder(t), `${customers}tests:\n${tests.join('')}`);
  // The first run loads and compiles.
  await runInProcess(['test', samples]);
  const began = process.cpuUsage();
  const { code, out } = await runInProcess(['test', file]);
  const { user, system } = process.cpuUsage(began);
  const tookMs = (user + system) / 1000;
  t.is(code, 0);
  t.regex(out, /1000 tests passed/);
  t.log(`1000 tests in ${Math.round(tookMs)} ms`);
  t.true(tookMs < 2_000, `${tookMs} ms`);
});
