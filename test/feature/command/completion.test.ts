// Tests the completion command. bash runs its script for real; the scripts of shells that may not be installed are
// compared with the expected content.
import { spawnSync } from 'node:child_process';
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';

/** The completions that bash offers for the last word of the line. */
function completeInBash(name: string, script: string, ...words: string[]): string[] {
  const program = `${script}
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_${name}_completion
printf '%s\\n' "\${COMPREPLY[@]}"
`;
  const args = ['--noprofile', '--norc', '-c', program, 'bash', name, ...words];
  const { stdout, stderr, status } = spawnSync('bash', args, { encoding: 'utf8', timeout: 20_000 });
  if (status !== 0 || stderr !== '') throw new Error(`bash: ${stderr}`);
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash completes commands, options, values and shells', async (t) => {
  const { code, out } = await runInProcess(['completion', 'bash', '--name', 'rl']);
  t.is(code, 0);
  t.deepEqual(completeInBash('rl', out, 'ch'), ['check']);
  t.true(completeInBash('rl', out, '').includes('explain'));
  t.deepEqual(completeInBash('rl', out, 'check', '--f'), ['--format']);
  t.deepEqual(completeInBash('rl', out, 'check', 'rules', '--format', 'j'), ['json']);
  t.deepEqual(completeInBash('rl', out, 'explain', '--desc'), ['--descriptor']);
  t.deepEqual(completeInBash('rl', out, 'completion', ''), ['bash', 'zsh', 'fish']);
  // None of ours: bash continues with paths.
  t.deepEqual(completeInBash('rl', out, 'check', ''), []);
  t.deepEqual(completeInBash('rl', out, 'check', '--git', ''), []);
});

test("bash completes the package's programs, and below control-plane its commands", async (t) => {
  const { out } = await runInProcess(['completion', 'bash']);
  const complete = (...words: string[]) => completeInBash('ratelane', out, ...words);
  t.deepEqual(complete('w'), ['worker']);
  t.deepEqual(complete(''), ['worker', 'control-plane', 'client', 'router', '--help', '--version']);
  t.deepEqual(complete('control-plane', 'ch'), ['check']);
  t.deepEqual(complete('control-plane', 'check', 'rules', '--format', 'j'), ['json']);
  t.deepEqual(complete('worker', '--h'), ['--help']);
  t.deepEqual(complete('worker', 'ch'), []);
});

test('zsh gets each command with its options, values and descriptions', async (t) => {
  const { code, out } = await runInProcess(['completion', 'zsh']);
  t.is(code, 0);
  t.true(out.startsWith('#compdef ratelane\n'));
  t.true(out.includes("    'worker:decide rate limits for Envoy'\n"));
  t.true(out.includes("    'check:find problems in rules'\n"));
  t.true(
    out.includes("'*--format[output format (default\\: human)]:value:(human json sarif github)'"),
  );
  t.true(
    out.includes("'*--config_dir[check one directory as the reference'\\''s config check does]:"),
  );
  t.true(out.includes('        completion) _arguments'));
  t.true(out.includes("'1:argument:(bash zsh fish)'"));
});

test('fish gets each command with its options, values and descriptions', async (t) => {
  const { code, out } = await runInProcess(['completion', 'fish', '--name', 'rl']);
  t.is(code, 0);
  const lines = out.split('\n');
  t.true(
    lines.includes("complete -c rl -n __fish_use_subcommand -a check -d 'find problems in rules'"),
  );
  t.true(
    lines.includes(
      "complete -c rl -n '__fish_seen_subcommand_from check' -l format -x -a 'human json sarif github' -d 'output format (default: human)'",
    ),
  );
  t.true(
    lines.includes(
      "complete -c rl -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'",
    ),
  );
});

test('fish gets the programs of the package, and commands only below control-plane', async (t) => {
  const { out } = await runInProcess(['completion', 'fish']);
  const lines = out.split('\n');
  t.true(
    lines.includes(
      "complete -c ratelane -n __fish_use_subcommand -a worker -d 'decide rate limits for Envoy'",
    ),
  );
  t.regex(
    out,
    /-n '__fish_seen_subcommand_from control-plane; and not __fish_seen_subcommand_from [^']*check[^']*' -a check /,
  );
});

test('the JSON contains the script', async (t) => {
  const script = await runInProcess(['completion', 'bash']);
  const { out } = await runInProcess(['completion', 'bash', '--json']);
  t.deepEqual(JSON.parse(out), { shell: 'bash', script: script.out });
});
