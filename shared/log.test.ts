import { spawnSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../test/support/reviewed-lines.ts';
import type { LogFormat, LogLevel } from './log.ts';
import { createLog } from './log.ts';

function linesOf(level: LogLevel, format: LogFormat, wallMs = 1_795_221_309_955.253) {
  const lines: string[] = [];
  const log = createLog({ level, format, write: (line) => lines.push(line), wallMs: () => wallMs });
  return { lines, log };
}

// Proof of migrating.md: The fields of a JSON log line come in any order
test('a JSON line has exactly three fields', (t) => {
  const { lines, log } = linesOf('info', 'json');
  log.info('say "hi"');
  const line = lines[0] ?? '';
  t.deepEqual(Object.keys(JSON.parse(line)).sort(), ['@message', '@timestamp', 'level']);
  t.is(JSON.parse(line)['@message'], 'say "hi"');
  t.is(JSON.parse(line).level, 'info');
  t.is(Math.floor(Date.parse(JSON.parse(line)['@timestamp'])), 1_795_221_309_955);
});

test('the time is local and carries its offset', (t) => {
  const script = `
    import { createLog } from './log.ts';
    const log = createLog({ level: 'info', format: 'text', wallMs: () => 0,
      write: (line) => process.stdout.write(line) });
    log.info('x');`;
  const run = (zone: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
      env: { ...process.env, TZ: zone },
      encoding: 'utf8',
    }).stdout;
  t.is(run('Asia/Kolkata'), 'time="1970-01-01T05:30:00+05:30" level=info msg=x\n');
  t.is(run('America/New_York'), 'time="1969-12-31T19:00:00-05:00" level=info msg=x\n');
  t.is(run('UTC'), 'time="1970-01-01T00:00:00Z" level=info msg=x\n');
});

const detail = {
  fields: {
    line: 4,
    file: '/rules/my file.yaml',
    hint: "did you mean 'x'?",
    of: { domains: ['shop', 'mail'] },
  },
  shown: 'No\n  ^',
};
/** The time of a line, which is local, with its milliseconds. */
const time = /(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:09(\.\d+)?(?:Z|[+-]\d\d:\d\d)?/;

/** `FORMAT of LEVEL[ at MS]: CALL, ...`, a call being `LEVEL MESSAGE[ with detail| with FIELD]`; escapes are those of JSON. */
testLines(test, new URL('log.txt', import.meta.url), (given) => {
  const [, format, level, ms, calls = ''] =
    /^(\w+) of (\w+)(?: at (\d+))?: (.*)$/.exec(given) ?? [];
  const { lines, log } = linesOf(
    level as LogLevel,
    format as LogFormat,
    ms ? Number(ms) : undefined,
  );
  for (const call of calls.split(', ')) {
    const [, method = '', text, field] = /^(\w+) (.*?)(?: with (.*))?$/.exec(call) ?? [];
    const parse = (each: string | undefined): string => JSON.parse(`"${each}"`);
    const other = field && { fields: { field: parse(field) }, shown: parse(field) };
    log[method as 'info'](parse(text), field === 'detail' ? detail : other || undefined);
  }
  const shown = lines.map((line) => stripVTControlCharacters(line).replace(time, 'TIME$1'));
  return shown.map((line) => JSON.stringify(line).slice(1, -1)).join('') || 'nothing';
});

test('isDebug is whether debug messages are written', (t) => {
  t.false(linesOf('info', 'text').log.isDebug);
  t.true(linesOf('debug', 'text').log.isDebug);
  t.true(linesOf('trace', 'text').log.isDebug);
});

test('whatever the message holds, it stays one line and moves no cursor', (t) => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.constantFrom<LogFormat>('text', 'json'),
      (message, format) => {
        const { lines, log } = linesOf('info', format);
        log.info(message);
        const line = lines[0] ?? '';
        t.is(lines.length, 1);
        t.is(line.indexOf('\n'), line.length - 1);
        t.notRegex(line.slice(0, -1), /\p{Cc}|\u2028|\u2029|\u202e/u);
        if (format === 'json') t.is(JSON.parse(line)['@message'], message.toWellFormed());
      },
    ),
  );
});

test('a very long message is cut, and ends with the number of missing characters', (t) => {
  const { lines, log } = linesOf('info', 'text');
  log.info('a b'.repeat(100_000));
  t.true((lines[0]?.length ?? 0) < 70_000);
  t.regex(lines[0] ?? '', /\.\.\. \(234464 characters more\)"\n$/);
});

test.serial('the times follow the clock of the machine when it is set', (t) => {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level: 'info', format: 'json', write });
  const now = Date.now;
  const timeOf = (line: string | undefined) => Date.parse(JSON.parse(line ?? '')['@timestamp']);
  try {
    for (const step of [-3_600_000, 86_400_000]) {
      const set = now() + step;
      Date.now = () => set;
      log.info('x');
      t.is(timeOf(lines.at(-1)), set);
    }
  } finally {
    Date.now = now;
  }
});
