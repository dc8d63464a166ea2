// The test command: on the samples, on a file for each kind of mistake, and on expectations that do not hold.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseXml, XmlElement } from '@rgrove/parse-xml';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
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

test('the samples hold, and reach each limit of the sample rules', async (t) => {
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
  test(`a file with ${name.slice(0, -5)} is told with place and hint, and not run`, async (t) => {
    const file = join(badFolder, name);
    const expected = readFileSync(file.replace(/yaml$/, 'txt'), 'utf8');
    const { code, out } = await runInProcess(['test', file]);
    t.is(code, 1);
    t.is(out.replaceAll(`${badFolder}/`, ''), expected);
  });
}

test('each expectation that does not hold is told where it is written', async (t) => {
  const { code, out } = await runInProcess(['test', failing]);
  t.is(code, 1);
  const expected = readFileSync(failing.replace(/yaml$/, 'txt'), 'utf8');
  t.is(out.replaceAll(failing, 'answers_test.yaml'), expected);
});

test('--update writes what is, and changes nothing else', async (t) => {
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

test('--update keeps comments, quotes and layout, and fills keys without a value', async (t) => {
  const file = writeTest(
    createTemporaryFolder(t),
    `# Rules of the shop.
${customers}tests:
  - name: "first"   # of many
    domain: shop
    requests:
      - descriptor:   {customer: "ada"}
        code:   # what is it?
        rule: 'shop.other'   # quoted
        remaining:
        metric_key: "x"
`,
  );
  t.is((await runInProcess(['test', file, '--update'])).code, 0);
  t.is(
    readFileSync(file, 'utf8'),
    `# Rules of the shop.
${customers}tests:
  - name: "first"   # of many
    domain: shop
    requests:
      - descriptor:   {customer: "ada"}
        code:   OK # what is it?
        rule: 'shop.customer'   # quoted
        remaining: 2
        metric_key: "shop.customer"
`,
  );
});

test('a value that stands for two answers that differ is left alone, and told', async (t) => {
  const text = `${customers}tests:
  - name: t
    domain: shop
    requests:
      - {descriptor: {customer: ada}, remaining: &left 7}
      - {descriptor: {customer: ada}, remaining: *left}
`;
  const file = writeTest(createTemporaryFolder(t), text);
  const { code, out } = await runInProcess(['test', file, '--update']);
  t.is(code, 1);
  t.regex(out, /remaining is 2, not 7\n/);
  t.is(readFileSync(file, 'utf8'), text);
});

test('rules that end are tested before and after their end', async (t) => {
  const file = writeTest(
    createTemporaryFolder(t),
    `rules:
  domain: shop
  descriptors:
    - {key: customer, rate_limit: {unit: hour, requests_per_unit: 3}}
    - {key: customer, until: 2026-01-01T00:10:00Z, rate_limit: {unit: hour, requests_per_unit: 9}}
tests:
  - name: more is allowed for ten minutes
    domain: shop
    requests:
      - {descriptor: {customer: ada}, at: 599s, remaining: 8}
      - {descriptor: {customer: ada}, at: 600s, remaining: 1}
  - name: rules that a worker refuses then
    clock: 2024-01-01T00:00:00Z
    domain: shop
    requests: [{descriptor: {customer: ada}, code: OK}]
`,
  );
  const { code, out } = await runInProcess(['test', file]);
  t.is(code, 1);
  t.regex(out, /1 of 2 tests failed/);
  t.regex(
    out,
    /error: a worker refuses these rules at 2024-01-01T00:00:00Z: until is 2026-01-01T00:10:00Z, more than 366 days ahead\n/,
  );
});

test('settings of the worker change what is decided', async (t) => {
  const file = writeTest(
    createTemporaryFolder(t),
    `rules:
  domain: shop
  descriptors:
    - {key: customer, rate_limit: {unit: week, requests_per_unit: 10}}
worker: {WEEK_RATE_LIMIT_RESET_DAY: Monday, NEAR_LIMIT_RATIO: 0.2, SHADOW_MODE: true}
tests:
  - name: weeks begin on Monday, and nobody is refused
    clock: 2026-01-01T00:00:00Z
    domain: shop
    requests:
      - {descriptor: {customer: ada}, times: 11, code: OK, reset: 96h}
    statistics:
      shop.customer: {near_limit: 8, over_limit: 1}
`,
  );
  const { code, out } = await runInProcess(['test', file]);
  t.is(code, 0, out);
});

test('coverage names each limit that no test reaches', async (t) => {
  const folder = createTemporaryFolder(t);
  writeTest(
    folder,
    'domain: shop\ndescriptors:\n  - key: a\n    rate_limit: {unit: day, requests_per_unit: 1}\n    descriptors:\n      - {key: b, value: c, rate_limit: {unlimited: true}}\n',
    'rules.yaml',
  );
  const file = writeTest(
    folder,
    'rules: rules.yaml\ntests: [{name: t, domain: shop, requests: [{descriptor: {a: x}, code: OK}]}]\n',
  );
  const { code, out } = await runInProcess(['test', file, '--coverage']);
  t.is(code, 0);
  t.is(
    out.replaceAll(folder, ''),
    `/a_test.yaml: 1 test passed

coverage: 1 of 2 limits reached; no test reaches
  /rules.yaml:6:9: shop.a.b_c

1 file, 1 test: all passed
`,
  );
  const json = JSON.parse((await runInProcess(['test', file, '--coverage', '--json'])).out);
  t.like(json, { ok: true, tests: 1, failed: 0, broken: 0 });
  t.deepEqual(
    json.coverage.map((limit: { name: string; isReached: boolean }) => [
      limit.name,
      limit.isReached,
    ]),
    [
      ['shop.a', true],
      ['shop.a.b_c', false],
    ],
  );
});

test('as JSON each failure has its place and what the answer was', async (t) => {
  const { out } = await runInProcess(['test', failing, '--json']);
  const json = JSON.parse(out);
  t.like(json, { ok: false, tests: 3, failed: 2, broken: 0 });
  t.like(json.files[0].tests[1], { ok: false, line: 14 });
  t.like(json.files[0].tests[1].failures[1], { line: 17, column: 68, actual: '2' });
});

test('as annotations each failure stands beside its line', async (t) => {
  const { out } = await runInProcess(['test', failing, '--format', 'github']);
  const file = failing.replaceAll(':', '%3A');
  t.true(
    out.includes(
      `::error file=${file},line=17,col=68,title=failed-test::every kind of expectation that does not hold: remaining is 2, not 1%0Ahint: request 1: customer=ada`,
    ),
    out,
  );
  t.regex(out, /^1 file, 3 tests: 2 failed$/m);
});

/** Of the schema for JUnit XML that the xUnit plugin of Jenkins publishes (junit-10): what an element may hold, and
 * its attributes; those with a `!` must be there. */
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

test('JUnit XML keeps to its schema, whatever the names are', async (t) => {
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

test.serial('a thousand tests take less than a second of a processor', async (t) => {
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
  t.true(tookMs < 1_000, `${tookMs} ms`);
});

test('a folder without tests is wrong usage, and so is a path that is not there', async (t) => {
  const folder = createTemporaryFolder(t);
  const empty = await runInProcess(['test', folder]);
  t.is(empty.code, 2);
  t.regex(empty.err, /has no file named \*_test\.yaml or \*_test\.yml\n$/);
  t.is((await runInProcess(['test', join(folder, 'not-there')])).code, 2);
});
