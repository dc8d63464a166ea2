import { spawnSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import type { LogFormat, LogLevel } from './log.ts';
import { createLog } from './log.ts';

function linesOf(level: LogLevel, format: LogFormat, wallMs = 1_795_221_309_955.253) {
  const lines: string[] = [];
  const log = createLog({ level, format, write: (line) => lines.push(line), wallMs: () => wallMs });
  return { lines, log };
}

test('a text line has time, level and a quoted message', (t) => {
  const { lines, log } = linesOf('warning', 'text');
  log.warning("Listening for HTTP on '0.0.0.0:8080'");
  t.is(lines.length, 1);
  t.regex(
    lines[0] ?? '',
    /^time="2026-11-2\dT\d\d:\d\d:09(Z|[+-]\d\d:\d\d)" level=warning msg="Listening for HTTP on '0\.0\.0\.0:8080'"\n$/,
  );
});

test('a message of plain characters is not quoted', (t) => {
  const { lines, log } = linesOf('info', 'text');
  log.info('tls/server.pem_1-a@b^c+d');
  t.true(lines[0]?.endsWith(' level=info msg=tls/server.pem_1-a@b^c+d\n'));
});

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

test('a JSON time stamp has no trailing zeros in its fraction', (t) => {
  const whole = linesOf('info', 'json', 1_795_221_309_000);
  whole.log.info('x');
  t.regex(whole.lines[0] ?? '', /:09(Z|[+-]\d\d:\d\d)"/);
  const tenths = linesOf('info', 'json', 1_795_221_309_500);
  tenths.log.info('x');
  t.regex(tenths.lines[0] ?? '', /:09\.5(Z|[+-]\d\d:\d\d)"/);
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

test('only messages of the level and of more severe ones are written', (t) => {
  const written = (level: LogLevel) => {
    const { lines, log } = linesOf(level, 'text');
    log.debug('d');
    log.info('i');
    log.warning('w');
    log.error('e');
    return lines.map((line) => line.match(/level=(\w+)/)?.[1]).join(' ');
  };
  t.is(written('panic'), '');
  t.is(written('fatal'), '');
  t.is(written('error'), 'error');
  t.is(written('warning'), 'warning error');
  t.is(written('info'), 'info warning error');
  t.is(written('debug'), 'debug info warning error');
  t.is(written('trace'), 'debug info warning error');
});

test('isDebug is whether debug messages are written', (t) => {
  t.false(linesOf('info', 'text').log.isDebug);
  t.true(linesOf('debug', 'text').log.isDebug);
  t.true(linesOf('trace', 'text').log.isDebug);
});

test('on a terminal a message keeps its several lines, indented', (t) => {
  const { lines, log } = linesOf('info', 'terminal');
  log.warning('a.yaml:1:3: "x" is unknown\n  x: 1\n  ^\u001b[2J');
  t.is(lines.length, 1);
  t.regex(
    stripVTControlCharacters(lines[0] ?? ''),
    /^\d\d:\d\d:09 warning: a\.yaml:1:3: "x" is unknown\n {11}x: 1\n {11}\^\\u001b\[2J\n$/,
  );
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

const detail = {
  fields: {
    line: 4,
    file: '/rules/my file.yaml',
    hint: "did you mean 'x'?",
    of: { domains: ['shop', 'mail'] },
  },
  shown: 'No\n  ^',
};

test('details of a line are named fields, after those that every line has', (t) => {
  const text = linesOf('info', 'text');
  text.log.error('No', detail);
  t.regex(
    text.lines[0] ?? '',
    / level=error msg=No file="\/rules\/my file\.yaml" hint="did you mean 'x'\?" line=4 of="\{\\"domains\\":\[\\"shop\\",\\"mail\\"\]\}"\n$/,
  );
  const json = linesOf('info', 'json');
  json.log.warning('No', detail);
  const record = JSON.parse(json.lines[0] ?? '');
  const { '@timestamp': time, ...others } = record;
  t.is(typeof time, 'string');
  t.deepEqual(others, { '@message': 'No', level: 'warning', ...detail.fields });
});

test('on a terminal the human-readable details are shown on several lines', (t) => {
  const { lines, log } = linesOf('info', 'terminal');
  log.error('No', detail);
  t.regex(stripVTControlCharacters(lines[0] ?? ''), /^\S+ error: No\n {11}\^\n$/);
});

test('a notice is written at the level info wherever warnings are', (t) => {
  const seen = (level: LogLevel) => {
    const { lines, log } = linesOf(level, 'json');
    log.info('ordinary');
    log.notice('good news');
    return lines.map((line) => [JSON.parse(line).level, JSON.parse(line)['@message']]);
  };
  t.deepEqual(seen('error'), []);
  t.deepEqual(seen('warning'), [['info', 'good news']]);
  t.deepEqual(seen('info'), [
    ['info', 'ordinary'],
    ['info', 'good news'],
  ]);
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

test('characters that reverse, hide or end a line are escaped in every format', (t) => {
  const odd = '\u202e\u2066\u200e\u200b\u00ad\u2028\u0085\u{e0001}';
  for (const format of ['text', 'json', 'terminal'] as const) {
    const { lines, log } = linesOf('info', format);
    log.warning(`a${odd}b`, { fields: { field: odd }, shown: `a${odd}b` });
    t.notRegex(stripVTControlCharacters(lines[0] ?? '').trimEnd(), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    t.true(lines[0]?.includes('\\u202e\\u2066\\u200e\\u200b\\u00ad\\u2028\\u0085\\udb40\\udc01'));
  }
});
