// Tests rules from a revision of a Git repository, for all commands that read rules.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

// Other processes also create temporary repositories, so this test has its own folder.
const temporary = mkdtempSync(join(tmpdir(), 'command-git-'));
process.env['TMPDIR'] = temporary;
test.after.always(() => rmSync(temporary, { recursive: true, force: true }));

function leftovers(): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith('ratelane-git-'));
}

function createRepository(t: ExecutionContext) {
  const { path, write } = createRulesFolder(t);
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', path, ...identity, ...args], {
      encoding: 'utf8',
      timeout: 20_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  git('init', '--quiet', '--initial-branch=main');
  return {
    path,
    write,
    git,
    /** Returns the commit's id. */
    commit() {
      git('add', '--all');
      git('commit', '--quiet', '--no-gpg-sign', '--message', 'change');
      return git('rev-parse', 'HEAD');
    },
  };
}

test.serial('without a temporary directory every command requests that one is named', async (t) => {
  const repository = createRepository(t);
  repository.write('a.yaml', ruleText('a', 1));
  repository.commit();
  process.env['TMPDIR'] = join(repository.path, 'a.yaml');
  t.teardown(() => {
    process.env['TMPDIR'] = temporary;
  });
  for (const words of [
    ['check'],
    ['diff', 'git:HEAD', 'git:HEAD~0'],
    ['explain', '--domain', 'a', '--descriptor', 'k=v'],
  ]) {
    const { code, err } = await runInProcess([...words, '--git', repository.path]);
    t.is(code, 2, err);
    t.regex(err, /^error: .*--git needs a temporary directory: ENOTDIR: .*; name one in TMPDIR\n/);
  }
});

test('a revision is read with its own content, by branch, tag, commit and expression', async (t) => {
  const repository = createRepository(t);
  repository.write('rules/a.yaml', 'domain: a\ndescripters: []\n');
  const bad = repository.commit();
  repository.git('tag', 'v1');
  repository.write('rules/a.yaml', ruleText('a', 1));
  const good = repository.commit();
  const check = async (...flags: string[]) => {
    const run = await runInProcess(['check', '--git', repository.path, '--json', ...flags]);
    // If git takes seconds, the command reports that.
    t.is(run.err.replaceAll(/^waiting: .*\n/gm, ''), '');
    const { commit, files } = JSON.parse(run.out) as { commit: string; files: number };
    t.is(files, 1);
    return [run.code, commit];
  };
  t.deepEqual(await check(), [0, good]);
  t.deepEqual(await check('--rev', 'main'), [0, good]);
  t.deepEqual(await check('--rev', 'v1'), [1, bad]);
  t.deepEqual(await check('--rev', 'HEAD~1'), [1, bad]);
  t.deepEqual(await check('--rev', bad), [1, bad]);
  t.deepEqual(await check('--rev', good.slice(0, 8)), [0, good]);
});

test('a commit that only a name outside of branches leads to is fetched', async (t) => {
  const repository = createRepository(t);
  repository.write('a.yaml', ruleText('a', 1));
  repository.commit();
  repository.write('b.yaml', ruleText('b', 1));
  const proposed = repository.commit();
  repository.git('update-ref', 'refs/pull/7/head', proposed);
  repository.git('reset', '--quiet', '--hard', 'HEAD~1');
  const args = ['check', '--git', repository.path, '--json', '--rev', 'refs/pull/7/head'];
  const { code, out } = await runInProcess(args);
  t.is(code, 0);
  t.like(JSON.parse(out), { commit: proposed, files: 2 });
});

test('problems name the path in the repository, and --git-path selects a folder of it', async (t) => {
  const repository = createRepository(t);
  repository.write('rules/deep/a.yaml', 'domain: a\ndescripters: []\n');
  repository.write('docs/b.yaml', 'not: rules');
  repository.commit();
  const args = ['check', '--git', repository.path, '--git-path', './rules/'];
  const { code, out } = await runInProcess(args);
  t.is(code, 1);
  t.true(out.startsWith("rules/deep/a.yaml:2:1: error: unknown key 'descripters'\n"));
  t.regex(out, /\n1 file: 1 error\n$/);
});

test.serial('a missing revision or folder ends with code 2, and leaves nothing', async (t) => {
  const repository = createRepository(t);
  repository.write('a.yaml', ruleText('a', 1));
  repository.commit();
  const cases: readonly [flags: readonly string[], message: RegExp][] = [
    [
      ['--git', `${repository.path}/none`],
      /git fetch failed: .*does not appear to be a git repository/,
    ],
    [['--git', repository.path, '--rev', 'none'], /: there is no revision 'none'$/],
    [
      ['--git', repository.path, '--rev=--upload-pack=x'],
      /: there is no revision '--upload-pack=x'$/,
    ],
    [['--git', repository.path, '--git-path', 'none'], /has no folder 'none'$/],
    [['--git', 'ext::sh -c id'], /^error: --git: /],
  ];
  for (const [flags, message] of cases) {
    const { code, out, err } = await runInProcess(['check', ...flags]);
    t.is(code, 2);
    t.is(out, '');
    t.regex(err.trim(), message);
  }
  t.deepEqual(leftovers(), []);
});

test('explain reads a revision', async (t) => {
  const repository = createRepository(t);
  repository.write('a.yaml', ruleText('a', 1));
  repository.commit();
  repository.write('a.yaml', ruleText('a', 2));
  repository.commit();
  const args = [
    '--git',
    repository.path,
    '--rev',
    'HEAD~1',
    '--domain',
    'a',
    '--descriptor',
    'k=v',
  ];
  const { code, out } = await runInProcess(['explain', ...args]);
  t.is(code, 0);
  t.true(out.includes('  rule: a.yaml:3:5 (descriptors[0])\n  limit: 1 per year\n'));
});

test('diff compares revisions with each other and with files', async (t) => {
  const repository = createRepository(t);
  repository.write('rules/a.yaml', ruleText('a', 1));
  repository.commit();
  repository.write('rules/a.yaml', ruleText('a', 2));
  repository.commit();
  repository.write('rules/a.yaml', ruleText('a', 3));
  const flags = ['--git', repository.path, '--git-path', 'rules'];
  const revisions = await runInProcess(['diff', 'git:HEAD~1', 'git:main', ...flags]);
  t.is(revisions.code, 1);
  t.true(revisions.out.includes('    raised: 1 per year -> 2 per year\n'));
  const files = await runInProcess(['diff', 'git:HEAD', join(repository.path, 'rules'), ...flags]);
  t.is(files.code, 1);
  t.true(files.out.includes('    raised: 2 per year -> 3 per year\n'));
});
