import { readdirSync, readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { createTextReporter } from '../problem/reporter.ts';
import { readOrdinaryYaml } from './yaml-ordinary.ts';
import { maxTextLength, parseAnyYaml } from './yaml-tree.ts';

const fixtures = new URL('../../../test/fixtures/rules/', import.meta.url);

/** Whether `text` is ordinary; if so, the library must read the same, without an error or a warning. */
function isReadAlike(t: ExecutionContext, text: string): boolean {
  const tree = readOrdinaryYaml(text);
  if (tree === undefined) return false;
  const reporter = createTextReporter('f', text);
  t.deepEqual(parseAnyYaml(text, reporter), tree, JSON.stringify(text));
  t.deepEqual(reporter.toProblems(), [], JSON.stringify(text));
  return true;
}

const everythingOrdinary = `---
# A comment above, and a blank line below.

domain: shop.example
descriptors:
- key: below_its_key   # a comment behind
  rate_limit: {unlimited: true}
-   key: path
    value: /a/b:80?x
- key: path
  value: /a/b:80

  # between
  rate_limit:
      unit: Minute
      requests_per_unit: 0x10
      replaces: [{name: one}, {name: "two words"}]
  descriptors:
    - key: remote_address
      value: 10.0.0.0/8 and more
    - key: 'quoted # no comment'
      value: "*"
  metadata:
    list:
      - one
      - -2.5
      - 'it'
    empty: {}
    none: [ ]
    nested: { a: [ 1, yes , ~x ], b: 1:30 }
    yes: y
    time: 2026-11-21
`;

test('ordinary rules are read as the library reads them', (t) => {
  const ordinary = everythingOrdinary.replace('/a/b:80?x', '/a/b').replace('~x', 'x');
  t.true(isReadAlike(t, ordinary));
  t.true(isReadAlike(t, ordinary.trimEnd()), 'without a line end');
  t.true(isReadAlike(t, `${ordinary}\n  # the end`));
  t.true(isReadAlike(t, ordinary.replace('---\n', '').replaceAll('\n', '\r\n')));
});

for (const folder of ['good', 'warned', 'bad']) {
  test(`${folder} fixtures are read as the library reads them, or are left to it`, (t) => {
    const names = readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith('.yaml'));
    const ordinary = names.filter((name) =>
      isReadAlike(t, readFileSync(new URL(`${folder}/${name}`, fixtures), 'utf8')),
    );
    t.true(ordinary.length > names.length / 3, `${ordinary.length} of ${names.length}`);
  });
}

testLines(test, new URL('yaml-ordinary.txt', import.meta.url), (given) =>
  readOrdinaryYaml(JSON.parse(`"${given}"`)) === undefined ? 'left to the library' : 'read',
);

test('rules that fill the longest document are ordinary', (t) => {
  const rule =
    '  - key: user\n    value: customer-7\n    rate_limit: {unit: minute, requests_per_unit: 5}\n';
  const text = `domain: shop\ndescriptors:\n${rule.repeat(maxTextLength / rule.length - 1)}`;
  t.truthy(readOrdinaryYaml(text));
});

test('any text made of pieces of YAML is read as the library reads it, or left to the library', (t) => {
  const piece = fc.constantFrom(
    ...['a', 'b', 'key', 'yes', '12', '-1', '1:30', '/x', 'a b', 'é', "'q'", '"q"', "''"],
    ...['- ', '-', ': ', ':', ', ', ',', '{', '}', '[', ']', '#', ' # c', ' ', '  ', '    '],
    ...['\n', '\n', '\n  ', '\n  - ', '\n- ', '\n    ', '\r\n', '\t', '---', '---\n', '...'],
    ...['a: ', 'b: ', 'c:\n  ', 'd:\n- ', 'e: {x: 1}', 'f: [1, b]', '&x ', '*x', '!t ', '|', '?'],
    ...['=', '%', '@', '`', '~', '.', '(', ')', '\u2028', '\u0085', "'", '"', '\\', '<<: '],
  );
  const line = fc
    .tuple(
      fc.constantFrom('', '  ', '    ', '- ', '  - ', '  -   '),
      fc.constantFrom('a', 'b', 'c', 'd.e'),
      fc.constantFrom(': 1', ': x y', ':', ': # c', ': {a: 1, b: [x]}', ': "s" # c', ' : 1', ': -'),
    )
    .map((parts) => `${parts.join('')}\n`);
  let ordinary = 0;
  const check = (parts: readonly string[]) => {
    const text = parts.join('');
    if (isReadAlike(t, text)) ordinary++;
  };
  fc.assert(fc.property(fc.array(line, { maxLength: 8 }), check), { numRuns: 8_000 });
  fc.assert(fc.property(fc.array(piece, { maxLength: 12 }), check), { numRuns: 8_000 });
  fc.assert(fc.property(fc.array(fc.oneof(line, piece), { maxLength: 10 }), check), {
    numRuns: 8_000,
  });
  t.true(ordinary > 500, `${ordinary} were ordinary`);
});
