import test from 'ava';
import fc from 'fast-check';
import { BadRequest, HttpError } from '../errors.ts';
import { defaultLimits } from '../limits.ts';
import { readXml } from './xml-reader.ts';
import { writeXml } from './xml-writer.ts';

const limits = { ...defaultLimits, xmlNodes: 1_000 };
const read = (text: string) => readXml(text, limits);

/** Without the declaration and the attributes of the root. */
function write(value: unknown): string {
  const text = writeXml(value);
  const begin = '<?xml version="1.0" encoding="UTF-8"?>\n<value xmlns:json="urn:ratelane:json"';
  return text.startsWith(begin) ? `<value${text.slice(begin.length)}` : `not begun well: ${text}`;
}

test('a value that is written is read back equal', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'<>&"\'\r\n\t \u0001\ufffe\uffff\ud800]:#') }),
    fc.constantFrom('xml', 'a:b', 'json:type', 'json:field', 'item', '#text', 'constructor'),
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'medium' },
      text,
      fc.maxSafeInteger(),
      fc.double().filter((number) => !/^-?\d{16,}$/.test(String(number))),
      fc.constantFrom(null, true, false),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(text, tie('tree'), { maxKeys: 4 }),
    ),
  }));
  const wide = { ...defaultLimits, jsonDepth: 1_000, xmlNodes: 1_000_000 };
  fc.assert(
    fc.property(tree, (value) => {
      // What a body of JSON may not hold, one of XML may not either.
      const json = JSON.stringify(value);
      fc.pre(!/\\u0000|"__proto__":/.test(json));
      const written = writeXml(value);
      t.deepEqual(readXml(written, wide), JSON.parse(json), written);
    }),
    { numRuns: 2_000 },
  );
});

test('a value is written so that those who know nothing of the marks can read it', (t) => {
  for (const [value, text] of [
    ['a < b', '<value>a &lt; b</value>'],
    [
      { id: 'w-1', size: 4, big: true },
      '<value><id>w-1</id><size json:type="number">4</size><big json:type="boolean">true</big></value>',
    ],
    [{ tags: ['a', 'b'] }, '<value><tags>a</tags><tags>b</tags></value>'],
    [{ tags: ['a'] }, '<value><tags json:item="true">a</tags></value>'],
    [{ tags: [] }, '<value><tags json:type="array"></tags></value>'],
    [
      [['a'], []],
      '<value json:type="array"><item json:type="array"><item>a</item></item><item json:type="array"></item></value>',
    ],
    [
      { none: null, empty: {}, text: '' },
      '<value><none json:type="null"/><empty json:type="object"></empty><text></text></value>',
    ],
    [null, '<value json:type="null"/>'],
    [7, '<value json:type="number">7</value>'],
    ['', '<value json:type="string">&quot;&quot;</value>'],
    [{}, '<value json:type="object"></value>'],
    [
      { '1st "name"': 'a' },
      '<value><json:field name="1st \\&quot;name\\&quot;">a</json:field></value>',
    ],
    [{ größe: 'a' }, '<value><größe>a</größe></value>'],
    ['\u0001\r', '<value json:type="string">&quot;\\u0001\\r&quot;</value>'],
    ['a\r\nb', '<value>a&#13;\nb</value>'],
    [new Date(0), '<value>1970-01-01T00:00:00.000Z</value>'],
  ] as const) {
    t.is(write(value), text);
    t.deepEqual(read(writeXml(value)), JSON.parse(JSON.stringify(value)));
  }
  t.throws(() => writeXml(1n), { instanceOf: TypeError });
  t.throws(() => writeXml(() => {}), { instanceOf: TypeError });
});

test('XML that knows nothing of the marks is read by its names', (t) => {
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
    ['<a><json:field name="__proto__"/></a>', /holds a name that is not allowed/],
    ['<a><constructor><prototype/></constructor></a>', /holds a name that is not allowed/],
    ['<a json:type="integer"/>', /json:type of a is not known/],
    ['<a json:other="1"/>', /the attribute json:other is not known/],
    ['<a><json:other/></a>', /the element json:other is not known/],
    ['<a><json:field/></a>', /the element json:field is not known, or has no name/],
    ['<a><json:field name="&quot;"/></a>', /has no name/],
    ['<a json:type="number">true</a>', /does not hold the number that it declares/],
    ['<a json:type="number">99999999999999999999</a>', /does not hold the number/],
    ['<a json:type="string">"\\u0000"</a>', /does not hold the string/],
    ['<a json:type="string">[]</a>', /does not hold the string/],
    ['<a json:type="null">1</a>', /does not hold the null/],
    ['<a json:type="number" b="1">1</a>', /holds more than its json:type allows/],
    ['<a json:type="array" b="1"/>', /holds more than its json:type allows/],
    ['<a json:type="array">x</a>', /holds more than its json:type allows/],
    [`<a><${'b'.repeat(9_000)} json:type="x"/></a>`, /^json:type of b{64}\.\.\. is not known$/],
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
