// The check command, on the fixtures of the rules and on folders as people have them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { keysAt } from '../../../shared/rules/rule-keys.ts';
import { type CommandRun, runInProcess } from '../../support/command-run.ts';
import { readExpectedText } from '../../support/expected-text.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const badFolder = join(fixtures, 'rules/bad');

// Bytes that are not UTF-8 are found before the text is looked at; they have a test of their own.
const badFiles = readdirSync(badFolder).filter(
  (name) => name.endsWith('.yaml') && name !== 'not-utf8.yaml',
);

for (const name of badFiles) {
  test(`check tells what is wrong with ${name}, at the right line and column`, async (t) => {
    const file = join(badFolder, name);
    const expected = readExpectedText(file).replaceAll(name, file);
    const { code, out } = await runInProcess(['check', file]);
    t.is(code, 1);
    const lines = out.split('\n');
    const summary = lines.splice(-3).join('\n');
    t.regex(summary, /^\n1 file: \d+ errors?(, \d+ warnings?)?\n$/);
    // Sorted by place here, and in the order of finding there.
    t.deepEqual(lines.sort(), expected.trimEnd().split('\n').sort());
  });
}

test('rules without problems are counted', async (t) => {
  const { code, out, err } = await runInProcess(['check', join(fixtures, 'rules/good')]);
  t.is(err, '');
  t.regex(out, /\d+ files, \d+ domains, \d+ limits: /);
  t.is(code, 0, out);
});

test('a warning is told, and the exit code stays 0', async (t) => {
  const file = join(fixtures, 'check/unreachable-wildcard.yaml');
  const expected = readFileSync(file.replace(/yaml$/, 'txt'), 'utf8');
  const { code, out } = await runInProcess(['check', file]);
  t.is(code, 0);
  t.is(
    out,
    `${expected.replaceAll('unreachable-wildcard.yaml', file)}\n1 file, 1 domain, 5 limits: 1 warning\n`,
  );
});

test('with --strict warnings fail too, as with --config_dir', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', `${ruleText('a', 1)}  - {key: idle}\n`);
  const checked = await runInProcess(['check', folder.path]);
  t.regex(checked.out, /: 1 warning\n$/);
  t.is(checked.code, 0);
  t.is((await runInProcess(['check', folder.path, '--strict'])).code, 1);
  t.is((await runInProcess(['check', '-config_dir', folder.path, '--strict'])).code, 1);
  folder.write('a.yaml', ruleText('a', 1));
  t.is((await runInProcess(['check', folder.path, '--strict'])).code, 0);
});

test('a note is told with its name, and does not fail with --strict', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', ruleText('a', 0));
  const { code, out } = await runInProcess(['check', folder.path, '--strict']);
  t.regex(
    out,
    /: note: requests_per_unit is 0, so every matching request is rejected \[limit-zero\]\n/,
  );
  t.regex(out, /: 1 note\n$/);
  t.is(code, 0);
  const json = await runInProcess(['check', folder.path, '--json']);
  t.like(JSON.parse(json.out), { ok: true, errors: 0, warnings: 0, notes: 1 });
  const sarif = JSON.parse((await runInProcess(['check', folder.path, '--format', 'sarif'])).out);
  t.is(sarif.runs[0].results[0].level, 'note');
  const github = await runInProcess(['check', folder.path, '--format', 'github']);
  t.regex(github.out, /^::notice file=\S+,line=\d+,col=\d+,title=limit-zero::/);
});

test('a comment or --allow keeps a warning from being told, in every format', async (t) => {
  const folder = createRulesFolder(t);
  const idle = `${ruleText('a', 1)}  - {key: idle}\n`;
  const check = (...flags: string[]) => runInProcess(['check', folder.path, '--strict', ...flags]);
  folder.write('a.yaml', idle);
  folder.write('notes.txt', '');
  t.is((await check('--allow', 'no-limit')).code, 1);
  t.is((await check('--allow', 'no-limit', '--allow', 'ignored-file')).code, 0);
  folder.write('a.yaml', `# ratelane: allow no-limit\n${idle}`);
  for (const format of ['human', 'json', 'sarif', 'github']) {
    const { code, out } = await check('--allow', 'ignored-file', '--format', format);
    t.is(code, 0);
    t.false(out.includes('no-limit'), format);
  }
  const reference = await runInProcess(['check', '-config_dir', folder.path, '--json']);
  t.false(reference.out.includes('no-limit'));
});

test('a comment that allows what does not occur is a note', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', `# ratelane: allow no-limit\n${ruleText('a', 1)}`);
  const { code, out } = await runInProcess(['check', folder.path, '--strict']);
  t.is(code, 0);
  t.regex(
    out,
    /a\.yaml:1:1: note: this comment allows 'no-limit', which does not occur here \[allow-comment\]/,
  );
});

test('--allow takes the names of warnings and notes only', async (t) => {
  for (const [name, hint] of [
    ['no-limt', "; did you mean 'no-limit'?"],
    ['unknown-key', ''],
  ]) {
    const { code, err } = await runInProcess(['check', 'x', '--allow', name ?? '']);
    t.is(code, 2);
    t.is(err.split('\n')[0], `error: --allow '${name}': there is no such warning or note${hint}`);
  }
});

function idsOf({ out }: CommandRun): string[] {
  const { problems } = JSON.parse(out) as { problems: { rule: string; file: string }[] };
  return problems.map(({ rule, file }) => `${rule} ${file.split('/').at(-1)}`);
}

test('below a directory the files of the worker are read, and each other one is named', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', ruleText('a', 1));
  folder.write('deep/er/b.yml', ruleText('b', 1));
  folder.write('deep/notes.txt', 'domain: [');
  folder.write('..data/c.yaml', 'domain: [');
  folder.write('.git/config.yaml', 'domain: [');
  folder.write('.git/objects/x', '');
  const run = await runInProcess(['check', folder.path, '--json']);
  t.is(run.code, 0);
  t.deepEqual(idsOf(run), ['ignored-file notes.txt']);
  t.like(JSON.parse(run.out), {
    ok: true,
    files: 2,
    domains: 2,
    limits: 2,
    errors: 0,
    warnings: 1,
  });
});

test('directories that overlap are read once', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('deep/a.yaml', ruleText('a', 1));
  folder.write('deep/notes.txt', '');
  const run = await runInProcess(['check', folder.path, `${folder.path}/deep/`, '--json']);
  t.like(JSON.parse(run.out), { files: 1, errors: 0, warnings: 1 });
});

test('a directory without rules is an error', async (t) => {
  const folder = createRulesFolder(t);
  const run = await runInProcess(['check', folder.path, '--json']);
  t.is(run.code, 1);
  t.deepEqual(idsOf(run), [`no-rules-file ${folder.path.split('/').at(-1)}`]);
});

test('a file that is named is read whatever it is called, and only once', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('limits.conf', ruleText('a', 1));
  folder.write('b.yaml', ruleText('b', 1));
  const conf = join(folder.path, 'limits.conf');
  const again = join(folder.path, '.', 'x', '..', 'b.yaml');
  const run = await runInProcess(['check', conf, folder.path, again, '--json']);
  t.deepEqual(idsOf(run), ['ignored-file limits.conf']);
  t.like(JSON.parse(run.out), { files: 2, domains: 2 });
});

test('two files of one domain are an error, unless domains are merged', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', ruleText('shop', 1));
  folder.write('b.yaml', ruleText('shop', 1).replace('key: k', 'key: l'));
  const split = await runInProcess(['check', folder.path, '--json']);
  t.is(split.code, 1);
  t.deepEqual(idsOf(split), ['duplicate-domain b.yaml']);
  const merged = await runInProcess(['check', folder.path, '--json', '--merge-domains']);
  t.is(merged.code, 0);
  t.deepEqual(idsOf(merged), []);
});

test('the file of node groups is no rules file, and its problems are told', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('shop.yaml', ruleText('shop', 1));
  folder.write('node-groups.yaml', 'groups:\n  - {name: edge, domains: [shp]}\n');
  const file = join(folder.path, 'node-groups.yaml');
  const warned = await runInProcess(['check', folder.path]);
  t.is(warned.code, 0, warned.out);
  t.is(
    warned.out,
    `${file}:2:28: warning: 'shp' matches no domain [node-groups]
      - {name: edge, domains: [shp]}
                               ^
    hint: did you mean 'shop'?

1 file, 1 domain, 1 limit: 1 warning
`,
  );
  folder.write('node-groups.yaml', 'groups:\n  - {name: edge}\n');
  const refused = await runInProcess(['check', folder.path, '--json']);
  t.is(refused.code, 1);
  t.deepEqual(idsOf(refused), ['node-groups node-groups.yaml']);
});

test('rules that are more than a worker takes at once are refused', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('shop.yaml', ruleText('shop', 1));
  const check = (bytes: string) =>
    runInProcess(['check', folder.path, '--json', '--max-response-bytes', bytes]);
  t.is((await check('1000')).code, 0);
  const refused = await check('50');
  t.is(refused.code, 1);
  t.like(JSON.parse(refused.out), { ok: false, errors: 1 });
  t.regex(refused.out, /"rule": "response-size"[^}]*more than the 50 that its workers take/);
  const misused = await check('many');
  t.is(misused.code, 2);
  t.regex(misused.err, /^error: --max-response-bytes 'many': expected a number of bytes/);
});

test('the JSON has all that is known of a problem', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', 'domain: a\ndescriptors:\n  - key: k\n    rate_limt: {}\n');
  const file = join(folder.path, 'a.yaml');
  const { code, out } = await runInProcess(['check', file, '--format', 'json']);
  t.is(code, 1);
  t.deepEqual(JSON.parse(out), {
    ok: false,
    files: 1,
    commit: null,
    domains: null,
    limits: null,
    errors: 1,
    warnings: 0,
    notes: 0,
    problems: [
      {
        severity: 'error',
        rule: 'unknown-key',
        file,
        line: 4,
        column: 5,
        path: 'descriptors[0].rate_limt',
        message: "unknown key 'rate_limt'",
        hint: "did you mean 'rate_limit'?",
        sourceLine: '    rate_limt: {}',
      },
    ],
  });
});

interface Sarif {
  readonly version: string;
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly name: string; readonly rules: { id: string }[] } };
    readonly results: readonly {
      readonly ruleId: string;
      readonly ruleIndex: number;
      readonly level: string;
      readonly message: { readonly text: string };
      readonly locations: readonly {
        readonly physicalLocation: {
          readonly artifactLocation: { readonly uri: string };
          readonly region?: { readonly startLine: number; readonly startColumn: number };
        };
      }[];
    }[];
  }[];
}

test('SARIF has a rule for each kind, and a region for each problem that has a place', async (t) => {
  const folder = createRulesFolder(t);
  folder.write(
    'a b#1.yaml',
    'domain: a\ndescriptors:\n  - key: k\n    rate_limt: {}\n  - key: k\n    value: 1.5\n    rate_limit: {unlimited: true}\n',
  );
  folder.write('notes.txt', '');
  const { code, out } = await runInProcess(['check', folder.path, '--format', 'sarif']);
  t.is(code, 1);
  const sarif = JSON.parse(out) as Sarif;
  t.is(sarif.version, '2.1.0');
  const [run] = sarif.runs;
  t.is(sarif.runs.length, 1);
  const rules = run?.tool.driver.rules.map(({ id }) => id) ?? [];
  t.deepEqual([...new Set(rules)], rules);
  t.deepEqual(
    run?.results.map(({ ruleId, ruleIndex, level, locations }) => {
      t.is(rules[ruleIndex], ruleId);
      const { artifactLocation, region } = locations[0]?.physicalLocation ?? {};
      t.regex(artifactLocation?.uri ?? '', /^file:\/\/\/\S+$/);
      return [
        level,
        ruleId,
        artifactLocation?.uri.split('/').at(-1),
        region?.startLine,
        region?.startColumn,
      ];
    }),
    [
      ['error', 'unknown-key', 'a%20b%231.yaml', 4, 5],
      ['error', 'value-type', 'a%20b%231.yaml', 6, 12],
      ['warning', 'ignored-file', 'notes.txt', undefined, undefined],
    ],
  );
  t.is(run?.results[0]?.message.text, "unknown key 'rate_limt'. did you mean 'rate_limit'?");
});

test('a rule that has ended is a note, also with --strict, and one that ends too late is refused', async (t) => {
  const folder = createRulesFolder(t);
  const rule = (until: string) =>
    `${ruleText('a', 1)}  - {key: k, value: v, until: ${until}, rate_limit: {unlimited: true}}\n`;
  folder.write('a.yaml', rule('2020-01-01T00:00:00Z'));
  const ended = await runInProcess(['check', folder.path, '--strict']);
  t.is(ended.code, 0, ended.out);
  t.regex(
    ended.out,
    /a\.yaml:5:5: note: this rule ended at 2020-01-01T00:00:00Z, it has no effect \[ended-rule\]\n/,
  );
  t.regex(ended.out, /: 2 notes\n$/);
  folder.write('a.yaml', rule('2999-01-01T00:00:00Z'));
  const late = await runInProcess(['check', folder.path]);
  t.is(late.code, 1);
  t.regex(
    late.out,
    /a\.yaml:5:5: error: until is 2999-01-01T00:00:00Z, more than 366 days ahead\n/,
  );
});

test('annotations for GitHub are one line each, with everything escaped', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a,b:c%.yaml', 'domain: a\ndescriptors:\n  - key: k\n    "x%\\n::y": 1\n');
  folder.write('notes.txt', '');
  const { out } = await runInProcess(['check', folder.path, '--format', 'github']);
  const prefix = folder.path;
  const keys = `keys here: ${new Intl.ListFormat('en-GB').format(keysAt('descriptor'))}`;
  t.deepEqual(out.split('\n'), [
    `::error file=${prefix}/a%2Cb%3Ac%25.yaml,line=4,col=5,title=unknown-key::unknown key 'x%25%0A::y'%0Ahint: ${keys}`,
    `::warning file=${prefix}/notes.txt,title=ignored-file::only files named *.yaml and *.yml are read; it is ignored%0Ahint: rename it if it holds rules, else move it elsewhere`,
    '1 file: 1 error, 1 warning',
    '',
  ]);
});

test('a terminal gets colours, unless NO_COLOR is set', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', 'domain: a\nkey: b\n');
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

test('-config_dir prints what the reference prints for rules that are good', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('b.yaml', ruleText('b', 1));
  folder.write('a.txt', ruleText('a', 1));
  folder.write('..data', '');
  const { code, out } = await runInProcess(['check', '-config_dir', folder.path]);
  t.is(code, 0);
  t.is(
    out,
    `checking rate limit configs...
loading config directory: ${folder.path}
opening config file: ${folder.path}/a.txt
opening config file: ${folder.path}/b.yaml
all rate limit configs ok
`,
  );
});

test('-config_dir tells problems in the place of panics, and exits with 1', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', 'domain: a\ndescripters: []\n');
  folder.write('deep/b.yaml', ruleText('b', 1));
  const { code, out } = await runInProcess(['check', `--config_dir=${folder.path}`]);
  t.is(code, 1);
  t.true(out.includes(`${folder.path}/a.yaml:2:1: error: unknown key 'descripters'\n`));
  t.true(out.includes(`${folder.path}/deep: error: it is a directory\n`));
  t.regex(out, /\n1 file: 2 errors\n$/);
  const missing = await runInProcess(['check', '-config_dir', join(folder.path, 'none')]);
  t.is(missing.code, 1);
  t.true(missing.out.includes('/none: error: cannot be read: it does not exist (ENOENT)\n'));
});

test('-merge_domain_configs merges as the reference does', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', ruleText('shop', 1));
  folder.write('b.yaml', ruleText('shop', 1).replace('key: k', 'key: l'));
  const check = (...flags: string[]) =>
    runInProcess(['check', '-config_dir', folder.path, ...flags]);
  t.is((await check()).code, 1);
  t.is((await check('-merge_domain_configs=false')).code, 1);
  t.is((await check('-merge_domain_configs')).code, 0);
  t.is((await check('--merge_domain_configs=true')).code, 0);
});

test('a file that is not UTF-8 has the place of its first bad byte', async (t) => {
  const folder = createRulesFolder(t);
  const file = join(folder.path, 'a.yaml');
  writeFileSync(file, Buffer.from('646f6d61696e3a20610a2320e9740a', 'hex'));
  const { code, out } = await runInProcess(['check', file]);
  t.is(code, 1);
  t.true(out.startsWith(`${file}:2:3: error: the file is not UTF-8 text\n`));
});
