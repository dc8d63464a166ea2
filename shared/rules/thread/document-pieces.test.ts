import test from 'ava';
import { everyKey } from '../../../test/support/every-key.ts';
import { runAtOnce } from '../../in-slices.ts';
import { parseRuleDocument } from '../document/document.ts';
import type { RuleDescriptor, RuleDocument } from '../rule-document.ts';
import { findParts, PartDigests } from './document-parts.ts';
import { createDocumentJoiner, toDocumentPieces } from './document-pieces.ts';

function piecesOf(yaml: string) {
  const { document, problems } = parseRuleDocument(yaml, 'large.yaml');
  if (document === undefined) throw new Error(problems[0]?.message);
  // A thread or a process receives copies.
  return { document, pieces: [...toDocumentPieces(document)].map((each) => structuredClone(each)) };
}

function join(pieces: ReturnType<typeof piecesOf>['pieces']) {
  const joiner = createDocumentJoiner();
  pieces.forEach(joiner.receive);
  return joiner.toDocument();
}

/** `top` rules, each with `below` rules. */
function nestedRules(top: number, below: number): string {
  const inner = Array.from(
    { length: below },
    (_, at) => `{key: b${at}, rate_limit: {unit: second, requests_per_unit: 1}}`,
  );
  const rules = Array.from(
    { length: top },
    (_, at) => `  - {key: a${at}, descriptors: [${inner.join(', ')}]}`,
  );
  return ['domain: d', 'descriptors:', ...rules, ''].join('\n');
}

for (const [what, yaml] of [
  ['every key', everyKey],
  ['no descriptors', 'domain: d\ndescriptors: []\n'],
  ['one level above another', nestedRules(30, 40)],
  ['one rule above thousands', nestedRules(1, 3_000)],
] as const) {
  test(`a document is the same when its pieces are joined: ${what}`, (t) => {
    const { document, pieces } = piecesOf(yaml);
    t.deepEqual(join(pieces), document);
  });
}

test('a joined document cannot be changed', (t) => {
  const { document, pieces } = piecesOf(everyKey);
  const joined = join(pieces);
  const frozen = (all: readonly RuleDescriptor[]): boolean =>
    Object.isFrozen(all) && all.every((each) => Object.isFrozen(each) && frozen(each.descriptors));
  t.true(frozen(document.descriptors));
  t.true(Object.isFrozen(joined) && frozen(joined.descriptors));
  t.true(Object.isFrozen(joined.descriptors[0]?.metadata?.['tier']));
});

test('no piece holds more than a hundred rules, wherever in the tree they are', (t) => {
  for (const yaml of [nestedRules(500, 0), nestedRules(1, 3_000), nestedRules(300, 3)]) {
    const { pieces } = piecesOf(yaml);
    t.true(pieces.every(({ descriptors }) => descriptors.length <= 100));
    t.true(pieces.length >= 4);
  }
  t.is(piecesOf(nestedRules(1, 99)).pieces.length, 1);
});

test('rules with much text are split into smaller pieces', (t) => {
  const text = 'x'.repeat(10_000);
  const [limit, listed] = ['unit: day, requests_per_unit: 1', `replaces: [{name: ${text}}]`];
  const rule = (at: number) =>
    at < 25
      ? `  - {key: k${at}, rate_limit: {${limit}}, metadata: {text: ${text}}}`
      : `  - {key: k${at}, rate_limit: {${limit}, ${listed}}}`;
  const yaml = ['domain: d', 'descriptors:', ...Array.from({ length: 50 }, (_, at) => rule(at))];
  const { pieces } = piecesOf(yaml.join('\n'));
  t.true(pieces.every((piece) => JSON.stringify(piece).length < 150_000));
});

test('a line with many rules is sent once', (t) => {
  const inner = Array.from(
    { length: 250 },
    (_, at) => `{key: k${at}, rate_limit: {unlimited: true}}`,
  );
  const { document, pieces } = piecesOf(`domain: d\ndescriptors: [${inner.join(', ')}]\n`);
  t.is(
    document.descriptors[249]?.position?.sourceLine?.length,
    inner.join(', ').length + 'descriptors: []'.length,
  );
  t.is(pieces.flatMap(({ lines }) => lines).length, 1);
});

test('a document with a missing piece is refused', (t) => {
  const { pieces } = piecesOf(nestedRules(300, 0));
  t.throws(() => join(pieces.slice(0, -1)), { message: 'a piece of a document is missing' });
  t.throws(() => join([...pieces, ...pieces.slice(1)]), {
    message: 'a piece of a document has a descriptor too many',
  });
});

/** The document that a receiver with `before` builds, and how many rules were sent. */
function sendAfter(before: RuleDocument, yaml: string) {
  const { document } = parseRuleDocument(yaml, 'large.yaml');
  if (document === undefined) throw new Error('a good document was refused');
  const known = runAtOnce(findParts(before));
  const sending = toDocumentPieces(document, { names: new PartDigests(), known });
  const pieces = [...sending].map((each) => structuredClone(each));
  const joiner = createDocumentJoiner(known);
  pieces.forEach(joiner.receive);
  const sent = pieces.reduce((sum, { descriptors }) => sum + descriptors.length, 0);
  return { document, joined: joiner.toDocument(), sent };
}

const blocks = (names: readonly string[]) =>
  ['domain: d', 'descriptors:', ...names.map((name) => `  - key: ${name}`)].join('\n');
const names = Array.from({ length: 3_000 }, (_, at) => `k${at}`);

for (const [what, before, after, most] of [
  ['one is another', blocks(names), blocks(names.with(1_000, 'new')), 100],
  ['the last one is gone', blocks(names), blocks(names.slice(0, -1)), 100],
  ['nothing is the same', blocks(names), blocks(names.map((name) => `new-${name}`)), 3_000],
  [
    'one below another is another',
    nestedRules(3, 400),
    nestedRules(3, 400).replace('b399', 'new'),
    105,
  ],
  [
    'the line of all is another',
    nestedRules(1, 400),
    `${nestedRules(1, 400).trimEnd()} # new`,
    401,
  ],
  ['one line more is above all', nestedRules(9, 40), `# new\n${nestedRules(9, 40)}`, 369],
] as const) {
  test(`a receiver that has a document is sent only what is not in it: ${what}`, (t) => {
    const known = piecesOf(before).document;
    const { document, joined, sent } = sendAfter(known, after);
    t.deepEqual(joined, document);
    t.true(sent > 0 || document.descriptors.length < 3_000);
    t.true(sent <= most, `${sent}`);
  });
}

test('a part that the receiver does not have is refused', (t) => {
  const before = piecesOf(blocks(names)).document;
  const known = runAtOnce(findParts(before));
  const pieces = [...toDocumentPieces(before, { names: new PartDigests(), known })];
  t.throws(() => join(pieces), { message: 'a part of a document that was known is not known' });
});
