import test from 'ava';
import fc from 'fast-check';
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

test('a value is written by its names, lists as repeated elements', (t) => {
  for (const [value, text] of [
    ['a < b', 'a &lt; b'],
    [{ id: 'w-1', size: 4, big: true }, '<id>w-1</id><size>4</size><big>true</big>'],
    [{ tags: ['a', 'b'], none: [] }, '<tags>a</tags><tags>b</tags>'],
    [[['a'], 1], '<item><item>a</item></item><item>1</item>'],
    [{ none: null, empty: {}, text: '' }, '<none></none><empty></empty><text></text>'],
    ['a\r\nb', 'a&#13;\nb'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
  ] as const) {
    t.is(writeXml(value), `<?xml version="1.0" encoding="UTF-8"?>\n<value>${text}</value>`);
  }
  for (const value of [
    1n,
    () => {},
    { '1st': 1 },
    { 'a:b': 1 },
    { xmlns: 1 },
    '\u0001',
    '\ud800',
  ]) {
    t.throws(() => writeXml(value), { instanceOf: TypeError });
  }
});

test('XML is read by its names', (t) => {
  for (const [text, value] of [
    ['<w/>', {}],
    ['<w> </w>', {}],
    ['<w>a</w>', 'a'],
    ['<w><a>1</a><b/></w>', { a: '1', b: '' }],
    ['<w>\n  <a>1</a>\n  <b> 2 </b>\n</w>\n', { a: '1', b: ' 2 ' }],
    ['<w><a>1</a><b>x</b><a>2</a></w>', { a: ['1', '2'], b: 'x' }],
    ['<w id="7"><a unit="cm">1</a></w>', { id: '7', a: { unit: 'cm', '#text': '1' } }],
    ['<w xmlns="u" xmlns:x="v" xml:lang="de"><x:a>1</x:a></w>', { 'x:a': '1' }],
    ['<w><!-- c --><?p i?><a>1<![CDATA[<&]]>&#65;&lt;</a></w>', { a: '1<&A<' }],
    ['\ufeff<?xml version="1.0" encoding="utf-8"?><w>a\r\nb\rc&#13;</w>', 'a\nb\nc\r'],
    [
      '<w><constructor>1</constructor><toString>2</toString></w>',
      { constructor: '1', toString: '2' },
    ],
  ] as [string, unknown][]) {
    t.deepEqual(read(text), value, text);
  }
});

test('what is no XML, or stands for no value, is refused', (t) => {
  for (const [text, reason] of [
    ['', /is not XML: see line 1, column 1/],
    ['a', /is not XML/],
    ['<a>\n<b></a>', /see line 2, column/],
    ['<a/><b/>', /is not XML/],
    ['<a/>b', /is not XML/],
    ['<a b="1" b="2"/>', /is not XML: see line 1/],
    ['<a b="<"/>', /is not XML/],
    ['<a>\u0001</a>', /is not XML/],
    ['<a>&#1;</a>', /is not XML/],
    ['<a>&nbsp;</a>', /is not XML/],
    ['<a>]]></a>', /is not XML/],
    ['<1/>', /is not XML/],
    ['<a>x<b/></a>', /the element a has text beside elements/],
    ['<a b="1"><b/></a>', /the element a has an attribute and an element of one name/],
    ['<a><__proto__/></a>', /holds a name that is not allowed/],
    ['<a __proto__="1"/>', /holds a name that is not allowed/],
    ['<a><constructor><prototype/></constructor></a>', /holds a name that is not allowed/],
    [
      `<${'b'.repeat(9_000)}>x<a/></${'b'.repeat(9_000)}>`,
      /^the element b{64}\.\.\. has text beside/,
    ],
  ] as const) {
    t.throws(() => read(text), { instanceOf: BadRequest, message: reason }, text.slice(0, 80));
  }
  for (const encoding of ['utf-16', 'ISO-8859-1']) {
    const text = `<?xml version="1.0" encoding="${encoding}"?><a/>`;
    const error = t.throws(() => read(text), { instanceOf: HttpError });
    t.is(error.status, 415);
  }
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
    const message = 'the body has a declaration (<!...>), which is not allowed';
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
  for (const text of [sized(1_000), attributes(1_000), `${sized(999)}<!-- <c> -->`]) {
    t.notThrows(() => read(text));
  }
  const attacks = [
    [nested(33), 'the body is nested deeper than 32'],
    ['<a b=">">'.repeat(33), 'the body is nested deeper than 32'],
    [nested(100_000), 'the body is nested deeper than 32'],
    ['<a>'.repeat(300_000), 'the body is nested deeper than 32'],
    ...[sized(1_001), attributes(1_001), sized(200_000), attributes(60_000)].map(
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
  // Each would take minutes if its time grew faster than its length.
  for (const piece of ['\r', '\r\n', '\r\r\n', '&#65;', '😀', ' ', 'a<![CDATA[\r]]>']) {
    const content = piece.repeat(600_000 / piece.length);
    const isText = !piece.startsWith('a<');
    const wide = { ...limits, xmlNodes: 100_000 };
    t.notThrows(() => readXml(`<a${isText ? ` b="${content}"` : ''}>${content}</a>`, wide));
  }
});

const tooMany = 'the body has more than 1000 elements and attributes';
