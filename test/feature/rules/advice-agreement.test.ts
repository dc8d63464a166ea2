// Tests that `explain` and `check` agree with a worker that reads the same files. Each rule has a different limit, so
// the answer shows which rule decided.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { createRandom } from '../../support/random.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorker } from '../../support/worker-in-process.ts';

/** Folders and files with common prefixes: their order is not alphabetical. */
const paths = ['a.yaml', 'a/b.yaml', 'a-b.yaml', 'a/b/c.yml', 'B.yaml', 'a b.yaml', 'b/a.yaml'];
const patterns = ['', 'a*', 'ab*', '*', '*c', 'a*c', 'abc', 'b', 'ab*c*'];
const values = ['a', 'ab', 'abc', 'abbc', 'b', 'xc', 'zz', 'ab-c-d'];
const keys = ['k', 'j'];

interface Rule {
  readonly file: string;
  readonly line: number;
  readonly limit: number;
}

/** Puts each pattern of each key into one of the files, at random. */
function drawFiles(seed: number) {
  const random = createRandom(seed);
  const texts = new Map<string, string[]>();
  const rules: Rule[] = [];
  const pairs = keys.flatMap((key) => patterns.map((value) => ({ key, value })));
  while (pairs.length > 0) {
    const [pair] = pairs.splice(random.below(pairs.length), 1);
    if (pair === undefined || random.chance(0.3)) continue;
    const file = random.pick(paths);
    const lines = texts.get(file) ?? ['domain: d', 'descriptors:'];
    const value = pair.value === '' ? '' : `value: "${pair.value}", `;
    const limit = 1_000 + rules.length;
    lines.push(
      `  - {key: ${pair.key}, ${value}rate_limit: {unit: hour, requests_per_unit: ${limit}}}`,
    );
    texts.set(file, lines);
    rules.push({ file, line: lines.length, limit });
  }
  return { texts, rules };
}

async function writeFiles(t: ExecutionContext, texts: ReadonlyMap<string, readonly string[]>) {
  const folder = createTemporaryFolder(t);
  for (const [path, lines] of texts) {
    const file = join(folder, 'config', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${lines.join('\n')}\n`);
  }
  return folder;
}

for (let seed = 1; seed <= 8; seed++) {
  test(`explain names the rule that decides, and check reports none of those as unreachable (${seed})`, async (t) => {
    const { texts, rules } = drawFiles(seed);
    const folder = await writeFiles(t, texts);
    const asked = keys.flatMap((key) => values.map((value) => `${key}=${value}`));
    const worker = await startWorker(t, {
      env: { BACKEND_TYPE: 'memory', RUNTIME_ROOT: folder, MERGE_DOMAIN_CONFIG: 'true' },
    });
    const { statuses } = JSON.parse((await worker.decide(...asked)).text) as {
      statuses: { currentLimit?: { requestsPerUnit: number } }[];
    };
    const decided = statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit);
    t.true(new Set(decided).size > 5);

    const config = join(folder, 'config');
    const explained = await runInProcess([
      ...['explain', config, '--merge-domains', '--json', '--domain', 'd'],
      ...asked.flatMap((descriptor) => ['--descriptor', descriptor]),
    ]);
    const { descriptors } = JSON.parse(explained.out) as {
      descriptors: { match: { limit: { requestsPerUnit: number } } | null }[];
    };
    t.deepEqual(
      descriptors.map(({ match }) => match?.limit.requestsPerUnit),
      decided,
    );

    const checked = await runInProcess(['check', config, '--merge-domains', '--json']);
    const { problems } = JSON.parse(checked.out) as {
      problems: { rule: string; file: string; line: number }[];
    };
    const unreachable = problems.filter(({ rule }) => rule === 'unreachable-rule');
    t.true(unreachable.length > 0);
    const isOf = (rule: Rule) => (problem: { file: string; line: number }) =>
      problem.line === rule.line && problem.file.endsWith(`/config/${rule.file}`);
    const deciding = rules.filter(({ limit }) => decided.includes(limit));
    const blamed = deciding.filter((rule) => unreachable.some(isOf(rule)));
    t.deepEqual(blamed, [], JSON.stringify(unreachable));
  });
}
