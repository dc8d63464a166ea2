import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { hashed } from '../../test/support/hashed-entries.ts';
import { defaultRequestBounds } from '../decision/request-bounds.ts';
import { parseJsonRequest } from './proto-json-reader.ts';

const parse = (text: string) => parseJsonRequest(Buffer.from(text));

function read(t: { fail(message: string): void }, text: string) {
  const parsed = parse(text);
  if (parsed.ok) return parsed.request;
  t.fail(parsed.problem);
  throw new Error(parsed.problem);
}

const descriptor = {
  ...hashed([]),
  limit: undefined,
  hitsAddend: undefined,
  isNegativeHits: false,
};

test('every field is read, by its camelCase and by its original name', (t) => {
  const camel = `{"domain": "d", "hitsAddend": 2, "descriptors": [{
    "entries": [{"key": "k", "value": "v"}, {"value": "", "key": "j"}],
    "limit": {"requestsPerUnit": 7, "unit": "HOUR"}, "hitsAddend": "9", "isNegativeHits": true}]}`;
  const snake = camel
    .replaceAll('hitsAddend', 'hits_addend')
    .replaceAll('requestsPerUnit', 'requests_per_unit')
    .replaceAll('isNegativeHits', 'is_negative_hits');
  const expected = {
    domain: 'd',
    hitsAddend: 2,
    descriptors: [
      {
        ...hashed([
          { key: 'k', value: 'v' },
          { key: 'j', value: '' },
        ]),
        limit: { requestsPerUnit: 7, unit: 3 },
        hitsAddend: 9,
        isNegativeHits: true,
      },
    ],
  };
  t.deepEqual(read(t, camel), expected);
  t.deepEqual(read(t, snake), expected);
});

test('a field that is missing or null is unset', (t) => {
  const empty = { domain: '', descriptors: [], hitsAddend: 0 };
  t.deepEqual(read(t, '{}'), empty);
  t.deepEqual(read(t, '{"domain":null,"descriptors":null,"hitsAddend":null}'), empty);
  t.deepEqual(
    read(
      t,
      '{"descriptors":[{},{"entries":null,"limit":null,"hitsAddend":null,"isNegativeHits":null}]}',
    ).descriptors,
    [descriptor, descriptor],
  );
  t.deepEqual(
    read(t, '{"descriptors":[{"entries":[{"key":null,"value":null}],"limit":{}}]}').descriptors,
    [
      {
        ...descriptor,
        ...hashed([{ key: '', value: '' }]),
        limit: { requestsPerUnit: 0, unit: 0 },
      },
    ],
  );
});

test('a request about too many descriptors is refused with the numbers, and not read on', (t) => {
  const bounds = { ...defaultRequestBounds, maxDescriptors: 2, maxEntries: 3 };
  const ask = (...entryCounts: number[]) => {
    const descriptors = entryCounts.map((count) => ({ entries: Array(count).fill({ key: 'k' }) }));
    // The brace that is left out at the end would be an error of its own.
    return parseJsonRequest(Buffer.from(JSON.stringify({ descriptors }).slice(0, -1)), bounds);
  };
  t.deepEqual(ask(1, 1, 1), {
    ok: false,
    isTooLarge: true,
    problem:
      'the request has more than 2 descriptors; REQUEST_MAX_DESCRIPTORS sets how many there may be',
  });
  t.deepEqual(ask(2, 2), {
    ok: false,
    isTooLarge: true,
    problem: 'the request has more than 3 entries; REQUEST_MAX_ENTRIES sets how many there may be',
  });
  const fits = JSON.stringify({ descriptors: [{ entries: [{}, {}] }, { entries: [{}] }] });
  t.true(parseJsonRequest(Buffer.from(fits), bounds).ok);
});

test('integers may be strings, and have a fraction of zero or an exponent', (t) => {
  const forms: Record<string, number> = {
    '5': 5,
    '"5"': 5,
    '5.0': 5,
    '5.000': 5,
    '1e2': 100,
    '1E+2': 100,
    '"1e2"': 100,
    '1.50e1': 15,
    '0.5e1': 5,
    '500e-2': 5,
    '0': 0,
    '-0': 0,
    '0.0e99999999999999999999': 0,
    '4294967295': 4_294_967_295,
  };
  for (const [form, value] of Object.entries(forms)) {
    t.is(read(t, `{"hitsAddend": ${form}}`).hitsAddend, value, form);
  }
});

test('integers that are none, or do not fit, are refused', (t) => {
  const forms = [
    '-1',
    '1.5',
    '4294967296',
    '1e10',
    '1e99999999999999999999',
    '5e-1',
    '12e-1',
    '15e-99999999999999999999',
    '""',
    '" 5"',
    '"5 "',
    '"0x5"',
    '"five"',
    '05',
    '+5',
    '.5',
    '5.',
    '5e',
    '1_000',
    'NaN',
    'true',
    '[5]',
    '{}',
  ];
  for (const form of forms) t.false(parse(`{"hitsAddend": ${form}}`).ok, form);
});

test('hits of a descriptor are exact to 64 bits', (t) => {
  const hits = (form: string) =>
    read(t, `{"descriptors":[{"hitsAddend":${form}}]}`).descriptors[0]?.hitsAddend;
  t.is(hits('9007199254740991'), 9_007_199_254_740_991);
  t.is(hits('9007199254740993'), 9_007_199_254_740_993n);
  t.is(hits('"18446744073709551615"'), 18_446_744_073_709_551_615n);
  t.is(hits('0'), 0);
  t.false(parse('{"descriptors":[{"hitsAddend":18446744073709551616}]}').ok);
  t.false(parse('{"descriptors":[{"hitsAddend":{"value":5}}]}').ok);
});

test('a unit is a name or any number of 32 bits', (t) => {
  const unit = (form: string) =>
    read(t, `{"descriptors":[{"limit":{"unit":${form}}}]}`).descriptors[0]?.limit?.unit;
  const names = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'];
  for (const [number, name] of names.entries()) t.is(unit(`"${name}"`), number);
  t.is(unit('3'), 3);
  t.is(unit('7.0'), 7);
  t.is(unit('-1'), -1);
  for (const form of ['"FORTNIGHT"', '"hour"', '"WEEK"', '"3"', '2147483648', '1.5', 'true']) {
    t.false(parse(`{"descriptors":[{"limit":{"unit":${form}}}]}`).ok, form);
  }
});

test('repeated and unknown members are refused, with their place', (t) => {
  const refusals: Record<string, string> = {
    '{"domain":"a","domain":"b"}': '(line 1:15): duplicate field "domain"',
    '{"domain":null,"domain":"b"}': '(line 1:16): duplicate field "domain"',
    '{"hitsAddend":1,"hits_addend":1}': '(line 1:17): duplicate field "hits_addend"',
    '{"dom\\u0061in":"a","domain":"b"}': '(line 1:20): duplicate field "domain"',
    '{\n "extra": 1}': '(line 2:2): unknown field "extra"',
    '{"hits_Addend":1}': '(line 1:2): unknown field "hits_Addend"',
    '{"__proto__":1}': '(line 1:2): unknown field "__proto__"',
    '{"toString":1}': '(line 1:2): unknown field "toString"',
    '{"descriptors":[{"entries":[{"key":"k","val":"x"}]}]}': '(line 1:40): unknown field "val"',
    '{"descriptors":[{"entries":[{"isNegativeHits":true}]}]}':
      '(line 1:30): unknown field "isNegativeHits"',
  };
  for (const [text, problem] of Object.entries(refusals))
    t.deepEqual(parse(text), { ok: false, problem });
});

test('values of another type are refused', (t) => {
  const texts = [
    '{"domain": 5}',
    '{"domain": true}',
    '{"domain": ["d"]}',
    '{"descriptors": {}}',
    '{"descriptors": "k"}',
    '{"descriptors": ["k"]}',
    '{"descriptors": [null]}',
    '{"descriptors": [{"entries": [null]}]}',
    '{"descriptors": [{"entries": {"key": "k"}}]}',
    '{"descriptors": [{"entries": [{"key": 1}]}]}',
    '{"descriptors": [{"limit": 5}]}',
    '{"descriptors": [{"isNegativeHits": "true"}]}',
    '{"descriptors": [{"isNegativeHits": 1}]}',
    '{"descriptors": [{"isNegativeHits": truex}]}',
  ];
  for (const text of texts) t.false(parse(text).ok, text);
});

test('a body that is no JSON object is refused', (t) => {
  const texts = [
    '',
    '  ',
    '{',
    '{"domain"',
    '{"domain":',
    '{"domain":"d"',
    '{"domain":"d",}',
    '{"domain":"d" "hitsAddend":1}',
    '{,}',
    '{domain:"d"}',
    "{'domain':'d'}",
    '{"descriptors":[{},]}',
    '{"descriptors":[',
    'hello',
    'null',
    '[]',
    '"x"',
    '5',
    '{} {}',
    '{}x',
    '\ufeff{}',
    '{} // comment',
    '\u00a0{}',
  ];
  for (const text of texts) t.false(parse(text).ok, JSON.stringify(text));
});

test('strings keep every character and know every escape', (t) => {
  const domain = (text: string) => read(t, `{"domain":${text}}`).domain;
  t.is(domain('"\\u006b\\u00e9\\n\\t\\r\\b\\f\\/\\\\\\""'), 'ké\n\t\r\b\f/\\"');
  t.is(domain('"\\ud83d\\ude00"'), '😀');
  t.is(domain('"\\uD83D\\uDE00é€😀\u007f"'), '😀é€😀\u007f');
  t.is(domain('"\\u0000"'), '\u0000');
});

test('broken strings are refused', (t) => {
  const strings = [
    '"a',
    '"a\\',
    '"\\x41"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\ud83d"',
    '"\\ud83d\\n"',
    '"\\ud83dx"',
    '"\\ud83d\\u0041"',
    '"\\ude00"',
    '"\n"',
    '"\u0000"',
    '"\\constructor"',
  ];
  for (const text of strings) t.false(parse(`{"domain":${text}}`).ok, text);
  t.deepEqual(parseJsonRequest(Buffer.from('{"domain":"\xc3("}', 'latin1')), {
    ok: false,
    problem: 'the body is not UTF-8',
  });
  t.false(parseJsonRequest(Buffer.from('{"domain":"\xed\xa0\x80"}', 'latin1')).ok);
});

test('deep nesting and long names cost nothing', (t) => {
  t.false(parse('['.repeat(1_000_000)).ok);
  t.false(parse(`{"descriptors":${'['.repeat(1_000_000)}`).ok);
  t.false(parse(`{"descriptors":[${'{"limit":'.repeat(100_000)}`).ok);
  const parsed = parse(`{"${'x'.repeat(1_000_000)}":1}`);
  t.true(!parsed.ok && parsed.problem.length < 200);
});

test('the output of JSON.stringify is read as it was', (t) => {
  const text = fc.string({ unit: 'grapheme' });
  const request = fc.record({
    domain: text,
    descriptors: fc.array(
      fc.record({
        entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 3 }),
        limit: fc.record({ requestsPerUnit: fc.nat(), unit: fc.integer({ min: 0, max: 9 }) }),
        hitsAddend: fc.maxSafeNat(),
        isNegativeHits: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
    hitsAddend: fc.nat(),
  });
  fc.assert(
    fc.property(request, fc.constantFrom(0, 2), (value, indent) => {
      const descriptors = value.descriptors.map((each) => ({ ...each, ...hashed(each.entries) }));
      t.deepEqual(parse(JSON.stringify(value, null, indent)), {
        ok: true,
        request: { ...value, descriptors },
      });
    }),
  );
  t.pass();
});

test('damaged text is never read as something that JSON.parse refuses, and never throws', (t) => {
  const whole =
    '{"domain":"d\\u00e9","hitsAddend":12,"descriptors":[{"entries":[{"key":"k","value":"v"}],"isNegativeHits":true}]}';
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.constantFrom(...'{}[]",:\\ue0-.')), {
        minLength: 1,
        maxLength: 3,
      }),
      (changes) => {
        const characters = [...whole];
        for (const [position, character] of changes) characters[position] = character;
        const text = characters.join('');
        if (parse(text).ok) t.notThrows(() => JSON.parse(text));
      },
    ),
    { numRuns: 1000 },
  );
  t.pass();
});

test('escapes cost little more than the characters that they stand for', (t) => {
  t.timeout(20_000);
  const parseFor = (value: string) => {
    const body = Buffer.from(`{"domain": "${value}"}`);
    const startMs = cpuMs();
    for (let times = 0; times < 20; times++) parseJsonRequest(body);
    return cpuMs() - startMs;
  };
  const long = 500_000;
  const plain = parseFor('a'.repeat(long));
  for (const form of ['\\n', '\\u0041', '\\ud83d\\ude00', '\\\\']) {
    const escapes = form.repeat(long / form.length);
    t.true(parseFor(escapes) < 3 * plain + 20, form);
    t.true(parseFor(`${escapes}\\x`) < 10 * plain + 20, `${form}, and an invalid one`);
  }
});

test('a number of a million digits is refused at once, whatever they are', (t) => {
  t.timeout(20_000);
  const zeros = '0'.repeat(1_000_000);
  for (const digits of [
    `0.${zeros}1`,
    `1${zeros}`,
    `0.${zeros}`,
    `1e${zeros}1`,
    `1.${zeros}5e-1`,
  ]) {
    const parsed = parse(`{"hitsAddend": ${digits}}`);
    if (!parsed.ok) t.true(parsed.problem.length < 200, parsed.problem);
  }
  t.deepEqual(parse(`{"hitsAddend": 2.${zeros}}`), {
    ok: true,
    request: { domain: '', descriptors: [], hitsAddend: 2 },
  });
});
