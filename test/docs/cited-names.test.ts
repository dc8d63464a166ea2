// What comments cite exists: a decision by its name in shared/docs/behaviour.md, such as `behaviour: verbs`, and a file
// by its name. Nothing is cited by number, or from a document outside the repository.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'ava';
import { listFiles } from '../support/listed-files.ts';
import { type Comment, commentsOf, notesOf } from './comments.ts';

const root = join(import.meta.dirname, '..', '..');
const files = listFiles();
const comments = [
  ...files
    .filter((path) => /\.(?:ts|mjs|proto|ya?ml)$/.test(path) && !path.startsWith('test/fixtures/'))
    .flatMap(commentsOf),
  ...files.filter((path) => path.startsWith('test/conformance/cases/')).flatMap(notesOf),
];

const positionOf = ({ file, line }: Comment) => `${file}:${line}`;

/** The headings of the third level, in kebab-case. */
const page = readFileSync(join(root, 'shared/docs/behaviour.md'), 'utf8');
const decisions = [...page.matchAll(/^### (.*)$/gm)].map(([, name = '']) => name);
const citations = comments.flatMap((comment) =>
  [...comment.text.matchAll(/\bbehaviour: ([a-z0-9-]+(?:, [a-z0-9-]+)*)/g)].flatMap(
    ([, list = '']) => list.split(', ').map((name) => ({ name, position: positionOf(comment) })),
  ),
);

test('decisions have unique names in kebab-case', (t) => {
  for (const name of decisions) t.regex(name, /^[a-z0-9]+(?:-[a-z0-9]+)+$|^[a-z]+$/);
  t.deepEqual([...new Set(decisions)], decisions);
});

test('every decision that a comment cites exists', (t) => {
  t.true(citations.length > 100);
  t.deepEqual(
    citations.filter(({ name }) => !decisions.includes(name)),
    [],
  );
});

test('every decision is cited where it is implemented', (t) => {
  const cited = new Set(citations.map(({ name }) => name));
  t.deepEqual(
    decisions.filter((name) => !cited.has(name)),
    [],
  );
});

const foreign =
  /\bdecisions? \d|\brules? \d+(?: to \d+)?[);]|\(specification\b|\bthe specification\b|\b(?:reference|routing)-behaviour\b|\bthe (?:brief|issue)\b/i;

test('nothing is cited by number, or from a document elsewhere', (t) => {
  t.deepEqual(comments.filter(({ text }) => foreign.test(text)).map(positionOf), []);
});

/** Every suffix of every path: `counters/store.ts` and `store.ts` of `worker/counters/store.ts`. */
const knownEnds = new Set(
  files.flatMap((path) => {
    const parts = path.split('/');
    return parts.map((_, at) => parts.slice(at).join('/'));
  }),
);
/** Names from other programs: samples, and files of public packages. */
const samples = new Set([
  'limits/index.ts',
  'limits/zones.ts',
  'opentelemetry.proto',
  'google/protobuf/descriptor.proto',
]);

test('every file that a comment names exists', (t) => {
  const names = comments.flatMap((comment) =>
    [
      ...comment.text.matchAll(
        /(?<![\w/<{*$@-])(?:\.{1,2}\/)*[\w-][\w./-]*\.(?:ts|mjs|md|proto|sh)\b(?![\w/(*-])/g,
      ),
    ].map(([name]) => ({ name, comment })),
  );
  t.true(names.length > 100);
  const missing = names.filter(
    ({ name, comment }) =>
      !samples.has(name) &&
      !knownEnds.has(name.replace(/^(?:\.{1,2}\/)+/, '')) &&
      !knownEnds.has(normalize(join(dirname(comment.file), name))),
  );
  t.deepEqual(
    missing.map(({ name, comment }) => `${positionOf(comment)}: ${name}`),
    [],
  );
});
