// The benchmark as a person starts it, in its quick mode: that it runs, not what it measures.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { BenchResults } from '../bench/results.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const mainFile = fileURLToPath(new URL('../bench/main.ts', import.meta.url));

test('a quick run measures the worker beside the yardstick and writes table, picture and rounds', async (t) => {
  t.timeout(300_000);
  const folder = createTemporaryFolder(t);
  const args = ['--quick', '--seconds', '1', '--rate', '500', '--output', folder];
  const names = ['redis-4-descriptors', 'unlimited-tls'];
  const child = spawn(
    process.execPath,
    [mainFile, ...args, ...names.flatMap((name) => ['--scenario', name])],
    { stdio: ['ignore', 'pipe', 'pipe'], timeout: 300_000 },
  );
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  t.is(code, 0, errors);
  t.regex(output, /^redis-4-descriptors +ratelane +[\d,]+ /m);

  const results = JSON.parse(await readFile(join(folder, 'results.json'), 'utf8')) as BenchResults;
  t.is(results.measurements.length, 8);
  for (const one of results.measurements) {
    t.true(one.decisionsPerSecond > 0, JSON.stringify(one));
    // A machine that is busy may send late, but every answer was as it should be.
    const wrong = one.problems.filter((problem) => /malformed|expected|grpc-status/.test(problem));
    t.deepEqual(wrong, []);
  }
  const ours = results.measurements.find((one) => one.scenario === names[0]);
  t.true((ours?.storeCommands.secondHalf ?? 0) > 0);
  t.true((await readFile(join(folder, 'results.md'), 'utf8')).includes('| unlimited-tls |'));
  t.true((await readFile(join(folder, 'results.svg'), 'utf8')).startsWith('<svg'));
});
