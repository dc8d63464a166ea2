// Reads nonsensical Git repositories: strange names, links, modes, sizes and texts. A revision is read with a problem
// for each, and nothing outside of the repository is read.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { createGitRepository, gitEnvironment } from '../support/git-repository.ts';
import { openGitStore } from '../support/git-store.ts';
import type { Random } from '../support/random.ts';
import { ruleText } from '../support/rules-folder.ts';
import { damageText, strangeWords } from './damage.ts';
import dictionary from './dictionary.json' with { type: 'json' };
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const secret = 'root:x:0:0';
const nameParts = [...dictionary.fileNames, 'x'.repeat(200)];
const modes = ['100644', '100644', '100644', '100755', '120000', '160000'];

interface Entry {
  readonly mode: string;
  readonly path: string;
  readonly content: Buffer;
}

function toEntries(random: Random): Entry[] {
  const paths = new Set<string>();
  return Array.from({ length: 1 + random.below(6) }, () => {
    const depth = 1 + random.below(random.chance(0.05) ? 40 : 3);
    const folders = Array.from({ length: depth }, () => random.pick(nameParts)).join('/');
    const path = `${folders}${random.pick(['.yaml', '.yaml', '.yml', '', '.yaml.bak'])}`;
    const mode = random.pick(modes);
    const text = random.chance(0.5)
      ? ruleText(random.pick(['shop', 'mail']), 1)
      : damageText(random, ruleText('d', 2), strangeWords);
    const content =
      mode === '120000'
        ? Buffer.from(random.pick(['/etc/passwd', '../../../../etc/passwd', 'a.yaml', '', '.']))
        : random.chance(0.1)
          ? random.bytes(30)
          : Buffer.from(random.chance(0.03) ? 'x'.repeat(9_000_000) : text);
    return { mode, path, content };
  }).filter(({ path }) => {
    // Git itself cannot have a file below a file.
    const clashes = [...paths].some(
      (other) => other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`),
    );
    paths.add(path);
    return !clashes;
  });
}

test.serial('any content of a repository is a revision with its problems', async (t) => {
  const repository = createGitRepository(t, { 'good.yaml': ruleText('good', 1) });
  const git = (args: readonly string[], input: string | Buffer = '') =>
    execFileSync('git', args, {
      cwd: repository.path,
      input,
      timeout: 60_000,
      maxBuffer: 2 ** 26,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...gitEnvironment,
        GIT_INDEX_FILE: join(repository.folder, 'fuzz-index'),
        GIT_AUTHOR_NAME: 'Ann\u0001',
        GIT_AUTHOR_EMAIL: 'a',
        GIT_COMMITTER_NAME: 'Ann',
        GIT_COMMITTER_EMAIL: 'a',
      },
    })
      .toString()
      .trim();
  const { store, log } = openGitStore(t, repository);
  await store.read();
  let files = 0;
  let reported = 0;
  await fuzz(
    t,
    'revisions of a hostile repository',
    async (random) => {
      const entries = toEntries(random);
      git(['read-tree', '--empty']);
      const lines = entries.map(({ mode, path, content }) => {
        const id =
          mode === '160000'
            ? '1'.repeat(40)
            : git(['hash-object', '-w', '--no-filters', '--stdin'], content);
        return `${mode} ${id}\t${path}\0`;
      });
      git(['update-index', '-z', '--index-info'], lines.join(''));
      const message = random.pick(['m', strangeWords.join(' ').replaceAll('\0', ''), '']);
      const commit = git(['commit-tree', git(['write-tree'])], message);
      git(['update-ref', 'refs/heads/main', commit]);
      await store.trigger();
      const revision = await store.read();
      if (revision.id !== commit)
        throw new Error(
          `the revision is ${revision.id}, not ${commit}: ${store.status().lastError}`,
        );
      for (const problem of revision.problems) {
        checkNamedProblem(problem.message);
        const shown = formatProblem(problem);
        if (shown.includes('\x1b')) throw new Error(JSON.stringify(shown));
        if (problem.file === '') throw new Error(`no name: ${shown}`);
      }
      if (revision.files.some(({ text }) => text.includes(secret)))
        throw new Error('a file from elsewhere');
      files += revision.files.length;
      reported += revision.problems.length;
      // Each entry that is not a file has a problem, unless it is hidden.
      const visible = entries.filter(
        ({ path }) => !path.split('/').some((part) => part.startsWith('.')),
      );
      if (revision.files.length + revision.problems.length !== visible.length) {
        throw new Error(
          `${revision.files.length} files and ${revision.problems.length} problems of ${visible.length}: ${JSON.stringify(visible.map(({ mode, path }) => [mode, path]))}`,
        );
      }
    },
    10,
  );
  t.log(`${files} files, ${reported} problems`);
  t.true(files > 0 && reported > 0);
  t.true(existsSync(repository.path));
  for (const line of log.lines) checkNamedProblem(line);
});
