import test from 'ava';
import { pluck } from '../support/pluck.ts';
import { parseCommandLine } from './command-line.ts';

function parse(...args: string[]) {
  const command = parseCommandLine(args);
  if (command === 'help') throw new Error('asked for help');
  return command;
}

test('without flags the whole grid is measured in five rounds, and the results are written', (t) => {
  const command = parse();
  t.is(command.scenarios.length, 11);
  t.deepEqual(command.rates, [undefined, 2_000, 8_000, 20_000]);
  t.is(command.rounds, 5);
  t.true(command.hasExtras);
  t.is(command.soakDecisions, 0);
  t.regex(command.outputFolder ?? '', /test\/bench\/results$/);
});

test('a part of the grid does not replace results of the whole grid', (t) => {
  const command = parse('--scenario', 'unlimited', '--scenario', 'redis-1-key', '--rate', '0');
  t.deepEqual(pluck(command.scenarios, 'name'), ['unlimited', 'redis-1-key']);
  t.deepEqual(command.rates, [undefined]);
  t.false(command.hasExtras);
  t.is(command.outputFolder, undefined);
});

test('another service is named before its command', (t) => {
  const { others } = parse('--against', 'go=./ratelimit -x', '--against', 'PORT_B=1 ./other');
  t.deepEqual(
    others.map(({ name, command }) => [name, command]),
    [
      ['go', './ratelimit -x'],
      ['other 2', 'PORT_B=1 ./other'],
    ],
  );
  t.is(parse('--against', './ratelimit').others[0]?.name, 'other');
});

test('each wrong flag is reported in one sentence', (t) => {
  t.throws(() => parse('--scenario', 'no'), { message: /^no scenario no; there are unlimited, / });
  t.throws(() => parse('--rounds', '0'), { message: '--rounds must be a number of at least 1: 0' });
  t.throws(() => parse('--seconds', 'x'), { message: /--seconds must be a number/ });
  t.throws(() => parse('--unknown'), { message: /Unknown option/ });
});
