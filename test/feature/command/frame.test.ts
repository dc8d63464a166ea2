// Tests what all commands of the control plane share: help, usage errors, exit codes, the real process.
import test from 'ava';
import type { CommandFrame } from '../../../control-plane/command/command-frame.ts';
import { createProgram } from '../../../control-plane/command/program.ts';
import { systemClock } from '../../../shared/clock.ts';
import { runInProcess } from '../../support/command-run.ts';
import { programFile, runProgram } from '../../support/programs.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';
import { testScenarios } from '../../support/scenarios.ts';

const mainFile = programFile('control-plane');

const frame: CommandFrame = {
  io: { write() {}, writeError() {}, isTerminal: false, environment: {}, clock: systemClock },
  finish() {},
  fail() {},
};
const program = await createProgram(frame);

// `serve` prints no answer but a log, whose format is a setting.
for (const command of program.commands.filter((each) => each.name() !== 'serve')) {
  test(`${command.name()} accepts --json, and its help lists its exit codes`, async (t) => {
    const { code, out, err } = await runInProcess([command.name(), '--help']);
    t.is(code, 0);
    t.is(err, '');
    t.regex(out, /^ {2}--json +\S/m);
    t.regex(out, /^Exit codes:\n {2}0 .+\n(?: +\S.*\n)*? {2}2 .+$/m);
    t.not(command.summary(), '');
  });
}

test('a program loads only the command that it runs, and none to list them', async (t) => {
  const [alone] = (await createProgram(frame, ['check'])).commands;
  t.is(alone?.helpInformation(), program.commands[1]?.helpInformation());
  const list = await createProgram(frame, ['--help']);
  t.deepEqual(list.commands[1]?.description(), '');
  t.is(list.helpInformation(), program.helpInformation());
});

test('flags may have one dash, values may begin with one, and -- ends the flags', async (t) => {
  t.is((await runInProcess(['check', '-help'])).code, 0);
  const folder = createRulesFolder(t, { 'a.yaml': ruleText('a', 1) });
  t.is((await runInProcess(['check', '-json', `${folder.path}/a.yaml`])).out[0], '{');
  const args = ['explain', folder.path, '-domain=a', '-descriptor', '-kk=v', '-json=false'];
  const { code, out } = await runInProcess(args);
  t.is(code, 0);
  t.true(out.startsWith('descriptor of domain a: -kk=v\n'));
  const named = await runInProcess(['check', '--', '-json']);
  t.regex(named.err, /^error: '-json' cannot be read/);
});

test('the help lists the commands', async (t) => {
  const { code, out } = await runInProcess(['--help']);
  t.is(code, 0);
  for (const command of program.commands) t.true(out.includes(`\n  ${command.name()} [options]`));
});

testScenarios(test, new URL('misuse.txt', import.meta.url), (words) => runInProcess(words));

const runProcess = (args: readonly string[], options: Parameters<typeof runProgram>[1] = {}) =>
  runProgram([process.execPath, mainFile, ...args], options);

for (const command of ['status', 'watch']) {
  test(`${command} names a file that has more than the token, and shows none of its content`, async (t) => {
    const folder = createRulesFolder(t);
    const path = `${folder.path}/token`;
    for (const text of ['ann write 2f1d9c44\nbob read 77ab9c44\n', '2f1d9c44\u20ac', '\n']) {
      folder.write('token', text);
      t.deepEqual(await runInProcess([command, '--token-file', path]), {
        code: 2,
        out: '',
        err: `error: ${path} does not hold a token alone\n`,
      });
    }
  });
}

test('the process ends with the exit code of the command', async (t) => {
  const folder = createRulesFolder(t, { 'a.yaml': ruleText('a', 1) });
  const options = { cwd: folder.path };
  t.deepEqual(await runProcess(['check', '.'], options), {
    code: 0,
    out: '1 file, 1 domain, 1 limit: no problems\n',
    err: '',
  });
  folder.write('a.yaml', 'domain: a\ndescripters: []\n');
  const bad = await runProcess(['check', 'a.yaml'], options);
  t.is(bad.code, 1);
  t.regex(bad.out, /^a\.yaml:2:1: error: unknown key 'descripters'\n/);
  const misused = await runProcess(['chek']);
  t.is(misused.code, 2);
  t.regex(misused.err, /Did you mean check/);
});

test("under npm, paths are relative to the user's directory", async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('a', 1) });
  const env = { npm_lifecycle_event: 'control-plane', INIT_CWD: folder.path };
  const { code, err } = await runProcess(['check', 'rules'], { env });
  t.is(code, 0, err);
});

test('a reader that closes the output early causes no failure', async (t) => {
  const folder = createRulesFolder(t);
  const rules = Array.from({ length: 5000 }, (_, index) => `  - {key: k${index}, value: v}`);
  folder.write('a.yaml', ['domain: a', 'descriptors:', ...rules].join('\n'));
  const { err } = await runProcess(['diff', 'a.yaml', 'a.yaml'], {
    cwd: folder.path,
    closesEarly: true,
  });
  t.is(err, '');
});
