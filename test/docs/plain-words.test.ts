// Finds everyday words for which the field has a term, as listed in the glossary: there are none in the documents and
// the paths in `clean`. `node test/docs/plain-words.ts FOLDER` lists those of a folder.
import test from 'ava';
import { findPlainWords, readPlainWords } from './plain-words.ts';

/** Folders are added once they have none of these words. */
const clean = [
  '*.md',
  'shared',
  'compose',
  'proto',
  // A pattern for files directly in a folder: Git's `*` also matches a slash.
  ':(glob)worker/*.ts',
  ...['client', 'fleet', 'listen', 'metrics', 'recording', 'settings', 'warm-up'].map(
    (room) => `worker/${room}`,
  ),
  'control-plane/command',
  ':(glob)control-plane/server/*.ts',
  // GitHub's own example of a signature contains one of the words.
  ':(exclude)control-plane/server/store/webhook.test.ts',
  ...['admin', 'console', 'fleet', 'metrics', 'notify', 'settings', 'store', 'xds'].map(
    (room) => `control-plane/server/${room}`,
  ),
];

test('documents, comments, messages and titles of tests have the terms of the field', (t) => {
  t.deepEqual(
    readPlainWords(...clean).map(({ place, word, instead }) => `${place}: '${word}': ${instead}`),
    [],
  );
});

const wordsOf = (file: string, content: string) =>
  findPlainWords(file, content).map(({ place, word }) => `${place} ${word}`);

test('comments, texts of several words and titles are read, names and single words are not', (t) => {
  const code = [
    '// It tells others.',
    ' * that nobody reads',
    "const told = tell('said'); // says `told`",
    "test('a worker says so', () => {});",
    'throw new Error(`the store of $' + '{people} came back`);',
    'report(`$' + '{people} says: no`);',
  ];
  t.deepEqual(wordsOf('a.ts', code.join('\n')), [
    'a.ts:1 tells',
    'a.ts:2 nobody',
    'a.ts:3 says',
    'a.ts:4 says',
    'a.ts:5 came back',
    'a.ts:6 says',
  ]);
  t.deepEqual(wordsOf('a.yaml', 'told: 1 # It is told.\n# anew'), [
    'a.yaml:1 told',
    'a.yaml:2 anew',
  ]);
});

test('only the sentences of a page are read, without code, link targets and generated tables', (t) => {
  const page = [
    'It `tells` [what people](told.md) do.',
    '```',
    'nobody',
    '```',
    '<!-- statistics:begin -->',
    'nobody',
    '<!-- statistics:end -->',
    'It goes on.',
  ];
  t.deepEqual(wordsOf('worker/docs/statistics.md', page.join('\n')), [
    'worker/docs/statistics.md:1 people',
    'worker/docs/statistics.md:8 goes on',
  ]);
});
