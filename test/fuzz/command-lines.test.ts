// Runs nonsensical command lines: each command ends with one of its exit codes, and names the wrong argument.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { parseClientArguments } from '../../worker/client/arguments.ts';
import { runInProcess } from '../support/command-run.ts';
import type { Random } from '../support/random.ts';
import { damageText, strangeWords } from './damage.ts';
import dictionary from './dictionary.json' with { type: 'json' };
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const fixtures = fileURLToPath(new URL('../fixtures/rules/good', import.meta.url));
/** Relative, since a prefix of an absolute path may be a folder with the whole machine in it. */
const rules = 'rules';
const noServer = 'http://127.0.0.1:9';

const samples: readonly (readonly string[])[] = [
  ['check', rules],
  ['check', rules, '--format', 'sarif'],
  ['check', rules, '--json', '--merge-domains'],
  ['explain', rules, '--domain', 'a', '--descriptor', 'k=v,l=w'],
  ['explain', rules, '-domain=a', '-descriptor', 'k=v', '--json'],
  ['diff', rules, rules],
  ['diff', '--git', rules, 'git:HEAD', rules],
  ['push', rules, '--admin-url', noServer, '--message', 'm'],
  ['status', '--admin-url', noServer],
  ['history', '--admin-url', noServer, '--limit', '3'],
  ['rollback', 'abc', '--admin-url', noServer],
  ['completion', 'bash'],
  ['help', 'check'],
];
const words = dictionary.commands;
/** These run until a signal ends them. */
const endless = /serve|watch|wait/;

function toCommandLine(random: Random): string[] {
  const args = [...random.pick(samples)];
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(args.length + 1);
    switch (random.below(5)) {
      case 0:
        args.splice(at, 1);
        break;
      case 1:
        args.splice(at, 0, random.pick(words));
        break;
      case 2:
        args.splice(at, 0, random.pick(strangeWords));
        break;
      case 3:
        args.splice(at, 1, random.chance(0.05) ? 'x'.repeat(100_000) : random.pick(strangeWords));
        break;
      default:
        args[at] = damageText(random, args[at] ?? '', words);
    }
  }
  // Arguments of a process cannot contain a NUL, nor half of a surrogate pair.
  return args
    .map((arg) => arg.replaceAll('\0', '').toWellFormed())
    .filter((arg) => !endless.test(arg));
}

test.serial('any command line of the control plane ends with a code and a reason', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-fuzz-'));
  await cp(fixtures, join(folder, 'a', 'b', 'rules'), { recursive: true });
  const before = process.cwd();
  process.chdir(join(folder, 'a', 'b'));
  t.teardown(async () => {
    process.chdir(before);
    await rm(folder, { recursive: true, force: true });
  });
  const codes = new Map<number, number>();
  await fuzz(t, 'command lines', async (random) => {
    const args = toCommandLine(random);
    const run = await runInProcess(args, { environment: { PATH: process.env['PATH'] } });
    codes.set(run.code, (codes.get(run.code) ?? 0) + 1);
    const shown = `${JSON.stringify(args).slice(0, 500)}: ${run.err.slice(0, 500)}`;
    if (![0, 1, 2, 3, 4, 5].includes(run.code)) throw new Error(`code ${run.code}: ${shown}`);
    if (run.code >= 2 && run.err + run.out === '') throw new Error(`no reason: ${shown}`);
    if (run.err.includes('a defect of this program')) throw new Error(shown);
    if (run.err !== '') checkNamedProblem(run.err);
    if (run.err.length > 20_000 + 2 * args.join().length)
      throw new Error(`${run.err.length} characters: ${shown}`);
  });
  t.log([...codes].map(([code, count]) => `code ${code}: ${count}`).join(', '));
  t.true((codes.get(0) ?? 0) > 0 && (codes.get(2) ?? 0) > 0);
});

const clientSamples = [
  ['-domain', 'a', '-descriptors', 'k=v,l=w', '-hits_addend', '3'],
  ['--domain=a', '--descriptors=k=v', '--timeout', '5s', '--json'],
  ['-dial_string', 'localhost:1', '-grpc-use-tls', '-grpc-cert-file', 'a', '-grpc-key-file', 'b'],
];

test.serial('any command line of the client is a call, or is refused with its flag', async (t) => {
  let calls = 0;
  await fuzz(t, 'command lines of the client', (random) => {
    const args = [...random.pick(clientSamples)];
    for (let count = 1 + random.below(3); count > 0; count--) {
      const at = random.below(args.length);
      const kind = random.below(3);
      if (kind === 0) args.splice(at, 1);
      else if (kind === 1) args.splice(at, 0, random.pick(strangeWords));
      else args[at] = damageText(random, args[at] ?? '', ['-', '=', ',', '1', 's', '--']);
    }
    const parsed = parseClientArguments(args);
    if (parsed.kind === 'call') calls++;
    if (parsed.kind === 'wrong') checkNamedProblem(parsed.message);
  });
  t.log(`${calls} calls`);
  t.true(calls > 0);
});
