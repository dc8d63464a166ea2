import test from 'ava';
import fc from 'fast-check';
import { ReplyReader } from './reply-reader.ts';

/** The lines and values that the reader finds in the chunks, one text each, and its error. */
function readAll(chunks: readonly Buffer[]): string[] {
  const seen: string[] = [];
  const reader = new ReplyReader({
    onLine: (line) => seen.push(`line ${line}`),
    onValue: (key, text) => seen.push(`value ${key}=${text ?? 'too long'}`),
  });
  for (const chunk of chunks) {
    const problem = reader.feed(chunk);
    if (problem !== undefined) return [...seen, `problem ${problem}`];
  }
  return seen;
}

const text =
  'VALUE a_1 0 3 77\r\n10 \r\nVALUE schlüssel 0 2\r\n\r\n\r\n' +
  `VALUE long 5 100\r\n${'x'.repeat(98)}\r\n\r\nEND\r\nSTORED\r\n12\r\n\r\n`;
const expected = [
  'value a_1=10 ',
  'value schlüssel=\r\n',
  'value long=too long',
  'line END',
  'line STORED',
  'line 12',
  'line ',
];

test('answers, even damaged ones, are read the same however they are split', (t) => {
  const reply = Buffer.from(text);
  t.deepEqual(readAll([reply]), expected);
  const offset = fc.integer({ min: 0, max: reply.length - 1 });
  const damage = fc.array(fc.tuple(offset, fc.constantFrom(...Buffer.from('\r\n 019xVALUE'))), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(fc.array(offset), damage, (offsets, changes) => {
      const bytes = Buffer.from(reply);
      for (const [at, value] of changes) bytes[at] = value;
      const cuts = [0, ...offsets.sort((a, b) => a - b), bytes.length];
      const chunks = cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut));
      t.deepEqual(readAll(chunks), readAll([bytes]));
    }),
    { numRuns: 500 },
  );
});

test('a long value is not stored', (t) => {
  const chunk = Buffer.alloc(65_536, 'x');
  const chunks = [Buffer.from('VALUE k 0 655360\r\n'), ...Array(10).fill(chunk)];
  t.deepEqual(readAll([...chunks, Buffer.from('\r\nEND\r\n')]), ['value k=too long', 'line END']);
});

test('a line of 2,048 bytes and a value of 64 are the longest that are read', (t) => {
  const line = 'x'.repeat(2_048);
  for (const cut of [0, 1]) {
    const end = ['\r\n'.slice(0, cut), '\r\n'.slice(cut)] as const;
    t.deepEqual(readAll([Buffer.from(line + end[0]), Buffer.from(end[1])]), [`line ${line}`]);
  }
  t.deepEqual(readAll([Buffer.from(`VALUE k 0 64\r\n${'1'.repeat(64)}\r\n`)]), [
    `value k=${'1'.repeat(64)}`,
  ]);
  t.deepEqual(readAll([Buffer.from(`VALUE k 0 65\r\n${'1'.repeat(65)}\r\nEND\r\n`)]), [
    'value k=too long',
    'line END',
  ]);
});

test('a line that does not end is refused', (t) => {
  t.deepEqual(readAll([Buffer.from('x'.repeat(2_050))]), ['problem an endless line']);
});

const refused: [string, string][] = [
  [`${'x'.repeat(2_049)}\r\n`, 'an endless line'],
  ['VALUE k 0\r\n', 'an unreadable value'],
  ['VALUE k 0 99999999999\r\n', 'an unreadable value'],
  ['VALUE k 0 1\r\n123\r\n', 'a value whose length differs from the announced one'],
];
for (const [sent, problem] of refused) {
  test(`${JSON.stringify(sent.slice(0, 30))} is refused: ${problem}`, (t) => {
    t.deepEqual(readAll([Buffer.from(sent)]), [`problem ${problem}`]);
  });
}
