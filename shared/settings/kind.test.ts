import test from 'ava';
import fc from 'fast-check';
import { bool, choice, duration, float, int, list, map, port, text } from './kind.ts';
import { readSetting } from './parse-settings.ts';
import type { Setting } from './setting.ts';

const row = { names: ['X'], doc: 'For a test' } as const;

/** The problem of a text, or undefined when it is accepted. */
function problemOf(setting: Setting<unknown>, given: string): string | undefined {
  return readSetting(setting, { X: given }).problems[0];
}

const accepted: [string, Setting<unknown>, string, unknown][] = [
  ['text', text({ ...row, default: 'd' }), ' a b ', ' a b '],
  ['text', text({ ...row, default: 'd' }), '', ''],
  ['text', text({ ...row, default: 'd', emptyMeans: 'e' }), '', 'e'],
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map(
    (word): [string, Setting<unknown>, string, unknown] => [
      'bool',
      bool({ ...row, default: false }),
      word,
      true,
    ],
  ),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map(
    (word): [string, Setting<unknown>, string, unknown] => [
      'bool',
      bool({ ...row, default: true }),
      word,
      false,
    ],
  ),
  ['int', int({ ...row, default: 1 }), '0', 0],
  ['int', int({ ...row, default: 1 }), '-0', 0],
  ['int', int({ ...row, default: 1 }), '+12', 12],
  ['int', int({ ...row, default: 1 }), '-12', -12],
  ['int', int({ ...row, default: 1 }), '1_000', 1000],
  ['int', int({ ...row, default: 1 }), '0x1f', 31],
  ['int', int({ ...row, default: 1 }), '0X1F', 31],
  ['int', int({ ...row, default: 1 }), '-0x_1F', -31],
  ['int', int({ ...row, default: 1 }), '0o17', 15],
  ['int', int({ ...row, default: 1 }), '0O17', 15],
  ['int', int({ ...row, default: 1 }), '017', 15],
  ['int', int({ ...row, default: 1 }), '0_17', 15],
  ['int', int({ ...row, default: 1 }), '0b101', 5],
  ['int', int({ ...row, default: 1 }), '9007199254740991', 9007199254740991],
  ['int', int({ ...row, default: 1, min: 3, max: 5 }), '3', 3],
  ['int', int({ ...row, default: 1, min: 3, max: 5 }), '5', 5],
  ['port', port({ ...row, default: 1 }), '0', 0],
  ['port', port({ ...row, default: 1 }), '65535', 65535],
  ['float', float({ ...row, default: 1 }), '0.5', 0.5],
  ['float', float({ ...row, default: 1 }), '.5', 0.5],
  ['float', float({ ...row, default: 1 }), '5.', 5],
  ['float', float({ ...row, default: 1 }), '-1e-3', -0.001],
  ['float', float({ ...row, default: 1 }), '1E3', 1000],
  ['duration', duration({ ...row, default: 1 }), '1m30s', 90_000],
  ['duration', duration({ ...row, default: 1 }), '0', 0],
  ['duration', duration({ ...row, default: 1 }), '150us', 0.15],
  ['duration', duration({ ...row, default: undefined }), '480h', 1_728_000_000],
  ['duration in seconds', duration({ ...row, default: 1, bareUnit: 's' }), '30', 30_000],
  ['duration in seconds', duration({ ...row, default: 1, bareUnit: 's' }), '30ms', 30],
  ['list', list({ ...row, example: 'a,b' }), 'a, b,,c', ['a', ' b', '', 'c']],
  ['list', list({ ...row, example: 'a,b' }), '', []],
  ['list', list({ ...row, example: 'a,b' }), '  ', []],
  ['map', map({ ...row, example: 'a:b' }), 'a:1, b: 2', { a: '1', ' b': ' 2' }],
  ['map', map({ ...row, example: 'a:b' }), 'a:,:b', { a: '', '': 'b' }],
  ['map', map({ ...row, example: 'a:b' }), 'a:1,a:2', { a: '2' }],
  ['map', map({ ...row, example: 'a:b' }), ' ', {}],
  ['choice', choice({ ...row, words: { A: 1, b: 2 }, default: 1 }), 'b', 2],
  ['choice', choice({ ...row, words: { A: 1, '': 2 }, default: 1 }), '', 2],
  ['choice in any case', choice({ ...row, words: { Ab: 1 }, default: 1, anyCase: true }), 'aB', 1],
];
for (const [kind, setting, given, value] of accepted) {
  // Proof of differences.md: A duration is at most 480h
  test(`a ${kind} reads ${JSON.stringify(given)} as ${JSON.stringify(value)}`, (t) => {
    t.deepEqual(readSetting(setting, { X: given }), {
      value,
      given: { name: 'X', text: given },
      problems: [],
    });
  });
}

const anyInt = int({ ...row, default: 7 });
const refused: [string, Setting<unknown>, string, string][] = [
  ['bool', bool({ ...row, default: false }), 'maybe', 'not a boolean; write true or false'],
  ['bool', bool({ ...row, default: false }), 'tRUE', 'not a boolean; write true or false'],
  ['bool', bool({ ...row, default: false }), ' true', 'not a boolean; write true or false'],
  ['bool', bool({ ...row, default: false }), '', 'empty; write true or false'],
  ['int', anyInt, '', 'empty; write a whole number such as 7'],
  ...['eighty', '1.5', '1e3', ' 1', '08', '0x', '0b2', '1__0', '1_', '_1', '0x1g', '--1', '٣'].map(
    (word): [string, Setting<unknown>, string, string] => [
      'int',
      anyInt,
      word,
      'not a whole number; write a whole number such as 7',
    ],
  ),
  ['int', anyInt, '9007199254740992', 'out of range; write a whole number such as 7'],
  ['int', anyInt, '9'.repeat(90), 'out of range; write a whole number such as 7'],
  [
    'int from 0',
    int({ ...row, default: 0, min: 0, example: 512 }),
    '-1',
    'out of range; write a whole number of at least 0 such as 512',
  ],
  [
    'int to 9',
    int({ ...row, default: 0, max: 9 }),
    '10',
    'out of range; write a whole number of at most 9 such as 0',
  ],
  [
    'port',
    port({ ...row, default: 80 }),
    '-1',
    'out of range; write a port from 0 to 65535 such as 80',
  ],
  [
    'port',
    port({ ...row, default: 80 }),
    '65536',
    'out of range; write a port from 0 to 65535 such as 80',
  ],
  ...['0x1p2', 'NaN', 'Inf', '1,5', '.', 'e5'].map(
    (word): [string, Setting<unknown>, string, string] => [
      'float',
      float({ ...row, default: 0.8, min: 0, max: 1 }),
      word,
      'not a number; write a number from 0 to 1 such as 0.8',
    ],
  ),
  [
    'float',
    float({ ...row, default: 0.8, min: 0, max: 1 }),
    '1.01',
    'out of range; write a number from 0 to 1 such as 0.8',
  ],
  ['float', float({ ...row, default: 0.8 }), '1e999', 'out of range; write a number such as 0.8'],
  ['float', float({ ...row, default: 0.8 }), '', 'empty; write a number such as 0.8'],
  [
    'duration',
    duration({ ...row, default: 5_000 }),
    '5',
    'the unit is missing (one of ns, us, ms, s, m, h); write a duration from 0s to 480h such as 5s',
  ],
  [
    'duration',
    duration({ ...row, default: 5_000 }),
    '',
    'empty; write a duration from 0s to 480h such as 5s',
  ],
  [
    'duration',
    duration({ ...row, default: 5_000 }),
    '-5s',
    'out of range; write a duration from 0s to 480h such as 5s',
  ],
  [
    'duration',
    duration({ ...row, default: 5_000 }),
    '481h',
    'out of range; write a duration from 0s to 480h such as 5s',
  ],
  [
    'duration',
    duration({ ...row, default: undefined, min: 1, example: 600_000 }),
    '0s',
    'out of range; write a duration from 1ms to 480h such as 10m',
  ],
  [
    'duration in seconds',
    duration({ ...row, default: 0, bareUnit: 's', example: 30_000 }),
    '1.5',
    'the unit is missing (one of ns, us, ms, s, m, h); write a number of seconds or a duration from 0s to 480h such as 30s',
  ],
  [
    'map',
    map({ ...row, example: 'env:prod' }),
    'a:b,c',
    'item 2 does not have exactly one ":"; write comma-separated key:value items such as env:prod',
  ],
  [
    'map',
    map({ ...row, example: 'env:prod' }),
    'a:b:c',
    'item 1 does not have exactly one ":"; write comma-separated key:value items such as env:prod',
  ],
  [
    'choice',
    choice({ ...row, words: { tcp: 1, udp: 2 }, default: 1 }),
    'TCP',
    'unknown value, did you mean tcp?; write tcp or udp',
  ],
  [
    'choice',
    choice({ ...row, words: { tcp: 1, udp: 2 }, default: 1 }),
    '',
    'empty; write tcp or udp',
  ],
  [
    'choice',
    choice({ ...row, words: { info: 1, warning: 2, '': 3, debug: 4 }, default: 1, anyCase: true }),
    'wraning',
    'unknown value, did you mean warning?; write one of info, warning, debug',
  ],
  [
    'choice',
    choice({ ...row, words: { a: 1 }, default: 1 }),
    'constructor',
    'unknown value; write a',
  ],
];
for (const [kind, setting, given, problem] of refused) {
  test(`a ${kind} (${setting.accepts}) is not read from ${JSON.stringify(given)}`, (t) => {
    t.is(problemOf(setting, given), `X=${JSON.stringify(given)}: ${problem}`);
    t.is(readSetting(setting, { X: given }).value, setting.default);
  });
}

test('a key of a map may be any text, also one that objects have', (t) => {
  const setting = map({ ...row, example: 'a:b' });
  const { value } = readSetting(setting, { X: '__proto__:1,toString:2' });
  t.deepEqual(Object.entries(value), [
    ['__proto__', '1'],
    ['toString', '2'],
  ]);
});

const kinds: Setting<unknown>[] = [
  text({ ...row, default: '' }),
  bool({ ...row, default: false }),
  anyInt,
  float({ ...row, default: 0 }),
  duration({ ...row, default: 0 }),
  list({ ...row, example: 'a' }),
  map({ ...row, example: 'a:b' }),
  choice({ ...row, words: { a: 1 }, default: 1 }),
];
test('a number has no minus zero', (t) => {
  for (const setting of [float({ ...row, default: 0 }), anyInt]) {
    t.deepEqual(setting.parse('-0'), { ok: true, value: 0 });
  }
});

test('no text makes a kind throw, and what is read is read again from its own text', (t) => {
  const likely = fc.string({ unit: fc.constantFrom(...'0123456789.,:+-_xobeEahmsnuTF ') });
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.oneof(likely, fc.string()), (setting, given) => {
      const result = setting.parse(given);
      if (!result.ok) {
        t.not(result.reason, '');
        return;
      }
      t.deepEqual(setting.parse(setting.format(result.value)), result);
    }),
    { numRuns: 2_000 },
  );
});
