import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { hashed } from '../../test/support/hashed-entries.ts';
import { testScenarios } from '../../test/support/scenarios.ts';
import { defaultRequestBounds } from '../decision/request-bounds.ts';
import { parseJsonRequest } from './proto-json-reader.ts';

const parse = (text: string) => parseJsonRequest(Buffer.from(text));

/** Converts a text to a body. */
const bodies: Readonly<Record<string, (text: string) => string>> = {
  body: (text) => text,
  hits: (text) => `{"hitsAddend": ${text}}`,
  'hits-of-a-descriptor': (text) => `{"descriptors":[{"hitsAddend":${text}}]}`,
  unit: (text) => `{"descriptors":[{"limit":{"unit":${text}}}]}`,
  domain: (text) => `{"domain":${text}}`,
};

/** Shows a request without derived values, and large numbers unchanged. */
function show(text: string): string {
  const parsed = parse(text);
  if (!parsed.ok) return parsed.problem;
  const { descriptors, ...request } = parsed.request;
  const plain = descriptors.map(({ entries, limit, hitsAddend, isNegativeHits }) => ({
    entries: entries.map(({ key, value }) => ({ key, value })),
    limit: limit ?? null,
    hitsAddend: hitsAddend === undefined ? null : `${hitsAddend}, a ${typeof hitsAddend}`,
    isNegativeHits,
  }));
  return JSON.stringify({ ...request, descriptors: plain });
}

testScenarios(test, new URL('proto-json-reader.txt', import.meta.url), ([kind = '', ...texts]) => ({
  out: texts.map((text) => `${text} -> ${show(bodies[kind]?.(text) ?? '')}`).join('\n'),
}));

test('bytes that are not JSON text are refused', (t) => {
  for (const text of ['\ufeff{}', '\u00a0{}', '{"domain":"\n"}', '{"domain":"\u0000"}'])
    t.false(parse(text).ok, JSON.stringify(text));
  t.deepEqual(parseJsonRequest(Buffer.from('{"domain":"\xc3("}', 'latin1')), {
    ok: false,
    problem: 'the body is not UTF-8',
  });
  t.false(parseJsonRequest(Buffer.from('{"domain":"\xed\xa0\x80"}', 'latin1')).ok);
  t.deepEqual(parse('{\n "extra": 1}'), {
    ok: false,
    problem: '(line 2:2): unknown field "extra"',
  });
});

test('a request with too many descriptors is refused with the numbers, and reading stops', (t) => {
  const bounds = { ...defaultRequestBounds, maxDescriptors: 2, maxEntries: 3 };
  const ask = (...entryCounts: number[]) => {
    const descriptors = entryCounts.map((count) => ({ entries: Array(count).fill({ key: 'k' }) }));
    // Without its final brace the text has another error, which must not be reached.
    return parseJsonRequest(Buffer.from(JSON.stringify({ descriptors }).slice(0, -1)), bounds);
  };
  t.deepEqual(ask(1, 1, 1), {
    ok: false,
    isTooLarge: true,
    problem: 'the request has more than 2 descriptors; REQUEST_MAX_DESCRIPTORS sets the maximum',
  });
  t.deepEqual(ask(2, 2), {
    ok: false,
    isTooLarge: true,
    problem: 'the request has more than 3 entries; REQUEST_MAX_ENTRIES sets the maximum',
  });
  const fits = JSON.stringify({ descriptors: [{ entries: [{}, {}] }, { entries: [{}] }] });
  t.true(parseJsonRequest(Buffer.from(fits), bounds).ok);
});

test('deep nesting and long names cost nothing', (t) => {
  t.false(parse('['.repeat(1_000_000)).ok);
  t.false(parse(`{"descriptors":${'['.repeat(1_000_000)}`).ok);
  t.false(parse(`{"descriptors":[${'{"limit":'.repeat(100_000)}`).ok);
  const parsed = parse(`{"${'x'.repeat(1_000_000)}":1}`);
  t.true(!parsed.ok && parsed.problem.length < 200);
});

test('the output of JSON.stringify is read unchanged', (t) => {
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

test('damaged text that JSON.parse refuses is never accepted, and never throws', (t) => {
  const full =
    '{"domain":"d\\u00e9","hitsAddend":12,"descriptors":[{"entries":[{"key":"k","value":"v"}],"isNegativeHits":true}]}';
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(full.length - 1), fc.constantFrom(...'{}[]",:\\ue0-.')), {
        minLength: 1,
        maxLength: 3,
      }),
      (changes) => {
        const characters = [...full];
        for (const [position, character] of changes) characters[position] = character;
        const text = characters.join('');
        if (parse(text).ok) t.notThrows(() => JSON.parse(text));
      },
    ),
    { numRuns: 1000 },
  );
  t.pass();
});

// Quadratic work would take thousands of times as long: the bounds allow for a garbage collection.
test('the work of reading escapes grows with their number alone', (t) => {
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
    t.true(parseFor(escapes) < 30 * plain + 200, form);
    t.true(parseFor(`${escapes}\\x`) < 30 * plain + 200, `${form}, and an invalid one`);
  }
});

test('a number of a million digits is refused at once, whatever the digits are', (t) => {
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
