import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { BadRequest, HttpError } from '../errors.ts';
import { defaultLimits } from '../limits.ts';
import { readXml, writeXml } from './xml.ts';

const limits = { ...defaultLimits, xmlNodes: 1_000 };
const read = (text: string) => readXml(text, limits);

test('fields and lists of texts that are written are read back equal', (t) => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'<>&"\'\r\n\t :#é') }),
    fc.constantFrom('a', ']]>', '&amp;'),
  );
  const name = fc.constantFrom('a', 'b-c', 'item', 'größe', 'constructor');
  const list = fc.array(text, { minLength: 2, maxLength: 4 });
  const object = fc.dictionary(name, fc.oneof(text, list), { minKeys: 1 });
  fc.assert(
    fc.property(object, (value) => {
      t.deepEqual(read(writeXml(value)), { ...value });
    }),
  );
});

testLines(test, new URL('xml.txt', import.meta.url), (given) => {
  const value = JSON.parse(given.replace(/^\w+ /, ''));
  try {
    return JSON.stringify(given.startsWith('read') ? read(value) : writeXml(value));
  } catch (error) {
    const { name, message } = error as Error;
    return error instanceof HttpError ? `${error.status} ${message}` : `${name}: ${message}`;
  }
});

test('a long name is shortened in an error, and what has no JSON text is not written', (t) => {
  const name = 'b'.repeat(9_000);
  t.throws(() => read(`<${name}>x<a/></${name}>`), {
    message: /^the element b{64}\.\.\. has text/,
  });
  for (const value of [1n, () => {}]) t.throws(() => writeXml(value), { instanceOf: TypeError });
  t.regex(writeXml(new Date(0)), /<value>1970-01-01T00:00:00\.000Z<\/value>$/);
});

test('entities are neither expanded nor searched', (t) => {
  const laughs = Array.from({ length: 9 }, (_, at) => {
    const before = at === 0 ? 'lol' : `&l${at - 1};`.repeat(10);
    return `<!ENTITY l${at} "${before}">`;
  });
  for (const text of [
    `<?xml version="1.0"?><!DOCTYPE a [${laughs.join('')}]><a>&l8;</a>`,
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>',
    '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;]><a/>',
    '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd"><a/>',
    '<!DOCTYPE a><a/>',
    '<!-- a --><!DOCTYPE a><a/>',
  ]) {
    const message =
      /^the body (?:is not XML: see line 1, |has a document type, which is not allowed)/;
    t.throws(() => read(text), { instanceOf: BadRequest, message });
  }
  t.is(read('<a><![CDATA[<!DOCTYPE a>]]></a>'), '<!DOCTYPE a>', 'a text may hold the same');
});

test('depth and number of elements and attributes are bounded, and texts that try it cost little', (t) => {
  const nested = (depth: number) => '<a>'.repeat(depth) + '</a>'.repeat(depth);
  const sized = (count: number) => `<a>${'<b/>'.repeat(count - 1)}</a>`;
  const attributes = (count: number) =>
    `<a ${Array.from({ length: count - 1 }, (_, at) => `a${at}='>'`).join(' ')}/>`;
  t.notThrows(() => read(nested(32)));
  for (const text of [sized(1_000), attributes(1_000), `${sized(998)}<!-- <c> -->`]) {
    t.notThrows(() => read(text));
  }
  const attacks = [
    [nested(33), 'the body is nested too deep'],
    [nested(1_000), 'the body is nested too deep'],
    ...[sized(1_001), attributes(1_001), sized(200_000), attributes(60_000), nested(100_000)].map(
      (text) => [text, tooMany] as const,
    ),
    [`<a>${'<!---->'.repeat(140_000)}</a>`, tooMany],
    [`<a>${'<?b?>'.repeat(200_000)}</a>`, tooMany],
    [`<a>${'<![CDATA[]]>'.repeat(80_000)}</a>`, tooMany],
    ...[
      '<',
      '&',
      '<a',
      '<!--',
      '<![CDATA[',
      '<?',
      "'",
      '<a b="',
      '<a b=',
      '</',
      '&a',
      '&#',
      ']]>',
      '-->',
    ].map((piece) => [`<a>${piece.repeat(1_000_000 / piece.length)}`, undefined] as const),
  ] as const;
  for (const [text, message] of attacks) {
    const error = t.throws(() => read(text), { instanceOf: BadRequest });
    if (message !== undefined) t.is(error.message, message);
  }
  // Each of these would take minutes if parsing were not linear in the length.
  for (const piece of ['\r', '\r\n', '\r\r\n', '&#65;', '😀', ' ', 'a<![CDATA[\r]]>']) {
    const content = piece.repeat(600_000 / piece.length);
    const isText = !piece.startsWith('a<');
    const wide = { ...limits, xmlNodes: 100_000 };
    t.notThrows(() => readXml(`<a${isText ? ` b="${content}"` : ''}>${content}</a>`, wide));
  }
});

const tooMany = 'the body has more than 1000 elements and attributes';
