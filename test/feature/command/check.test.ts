// Tests the check command on the fixtures of the rules and on realistic folders.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { readExpectedText } from '../../support/expected-text.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { testScenarios } from '../../support/scenarios.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const badFolder = join(fixtures, 'rules/bad');

// Bytes that are not UTF-8 are found before the text is parsed; they have their own test.
const badFiles = readdirSync(badFolder).filter(
  (name) => name.endsWith('.yaml') && name !== 'not-utf8.yaml',
);

for (const name of badFiles) {
  test(`check reports what is wrong with ${name}, at the right line and column`, async (t) => {
    const file = join(badFolder, name);
    const expected = readExpectedText(file)
      .replaceAll(name, file)
      .replaceAll(/ warning: (.*) \[misplaced-key\]$/gm, ' error: $1');
    const { code, out } = await runInProcess(['check', file]);
    t.is(code, 1);
    const lines = out.split('\n');
    const summary = lines.splice(-3).join('\n');
    t.regex(summary, /^\n1 file: \d+ errors?(, \d+ warnings?)?\n$/);
    // Sorted by position here, and by order of detection there.
    t.deepEqual(lines.sort(), expected.trimEnd().split('\n').sort());
  });
}

test('rules without problems are counted', async (t) => {
  const { code, out, err } = await runInProcess(['check', join(fixtures, 'rules/good')]);
  t.is(err, '');
  t.regex(out, /\d+ files, \d+ domains, \d+ limits: /);
  t.is(code, 0, out);
});

test('a warning is printed, and the exit code stays 0', async (t) => {
  const file = join(fixtures, 'check/unreachable-wildcard.yaml');
  const expected = readFileSync(file.replace(/yaml$/, 'txt'), 'utf8');
  const { code, out } = await runInProcess(['check', file]);
  t.is(code, 0);
  t.is(
    out,
    `${expected.replaceAll('unreachable-wildcard.yaml', file)}\n1 file, 1 domain, 5 limits: 1 warning\n`,
  );
});

for (const name of ['check', 'advice']) {
  const file = new URL(`${name}.txt`, import.meta.url);
  testScenarios(test, file, (words) => runInProcess(words));
}

test('a terminal gets colours, unless NO_COLOR is set', async (t) => {
  const folder = createRulesFolder(t, { 'a.yaml': 'domain: a\n' });
  const file = join(folder.path, 'a.yaml');
  const plain = await runInProcess(['check', file], { environment: {} });
  const coloured = await runInProcess(['check', file], { isTerminal: true, environment: {} });
  const refused = await runInProcess(['check', file], {
    isTerminal: true,
    environment: { NO_COLOR: '1' },
  });
  t.false(plain.out.includes('\u001b'));
  t.true(coloured.out.includes('\u001b[33mwarning\u001b[39m'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what colours are made of
  t.is(coloured.out.replaceAll(/\u001b\[\d+m/g, ''), plain.out);
  t.is(refused.out, plain.out);
});

test('a file that is not UTF-8 is reported with the position of its first bad byte', async (t) => {
  const folder = createRulesFolder(t);
  const file = join(folder.path, 'a.yaml');
  writeFileSync(file, Buffer.from('646f6d61696e3a20610a2320e9740a', 'hex'));
  const { code, out } = await runInProcess(['check', file]);
  t.is(code, 1);
  t.true(out.startsWith(`${file}:2:3: error: the file is not UTF-8 text\n`));
});

test('given the store of the counters, check reports problems of the rules with it', async (t) => {
  const folder = createRulesFolder(t);
  const limit = 'rate_limit: {unit: day, requests_per_unit: 1}';
  folder.write(
    'a.yaml',
    `domain: d
descriptors:
  - key: user
    shadow_mode: true
    ${limit}
  - {key: path, value: /a, ${limit}}
  - {key: free, shadow_mode: true, rate_limit: {unlimited: true}}
  - {key: above, quota_mode: true, descriptors: [{key: user, ${limit}}]}
`,
  );
  const check = async (...more: string[]) =>
    (await runInProcess(['check', folder.path, ...more])).out;
  const names = (text: string) =>
    ['stops-others', 'memory-cache-keys'].filter((name) => text.includes(name));
  t.deepEqual(names(await check()), []);
  t.deepEqual(names(await check('--stop-increment', 'enforced', '--backend', 'redis')), []);
  const stops = await check('--stop-increment', 'true');
  t.deepEqual(names(stops), ['stops-others']);
  t.regex(stops, /a\.yaml:3:5: warning: the rule for key 'user' has shadow_mode/);
  t.notRegex(stops, /rule for key '(free|above)' has/);
  const keys = await check('--backend', 'memcache');
  t.deepEqual(names(keys), ['memory-cache-keys']);
  t.regex(keys, /MEMCACHE_LONG_KEYS=hash/);
});
