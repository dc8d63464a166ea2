// Finds everyday words for which the field has a term, as listed in the glossary: there are none in the documents and
// the paths in `clean`. `node test/docs/plain-words.ts FOLDER` lists those of a folder.
import test from 'ava';
import { findPlainNames, findPlainWords, readPlainNames, readPlainWords } from './plain-words.ts';

/** They contain the words. */
const withWords = ':(exclude)test/docs/plain-words*';

const clean = [
  ...['*.md', 'shared', 'compose', 'proto', 'worker', 'control-plane', 'test', withWords],
  // GitHub's own example of a signature contains one of the words.
  ':(exclude)control-plane/server/store/webhook.test.ts',
];

test('names have the terms of the field', (t) => {
  const found = readPlainNames('shared', 'worker', 'control-plane', 'compose', 'test', withWords);
  t.deepEqual(
    found.map(({ position, word, instead }) => `${position}: '${word}': ${instead}`),
    [],
  );
});

test('documents, comments, messages and titles of tests have the terms of the field', (t) => {
  t.deepEqual(
    readPlainWords(...clean).map(
      ({ position, word, instead }) => `${position}: '${word}': ${instead}`,
    ),
    [],
  );
});

const wordsOf = (file: string, content: string) =>
  findPlainWords(file, content).map(({ position, word }) => `${position} ${word}`);

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
  const lines = ['# It goes on.', 'told | say ; said | told', '=== who says so', '$ say', 'told'];
  t.deepEqual(wordsOf('a.txt', lines.join('\n')), [
    'a.txt:1 goes on',
    'a.txt:2 told',
    'a.txt:3 says',
  ]);
});

test('each name of the code is read once, texts, comments and properties of others are not', (t) => {
  const code = [
    'const told = a.take(keepAlive); // place',
    'const text = `say $' + '{lastTold ? `look` : { kept }} nobody`;',
    'const isTakenBack = /whole/.test(told);',
  ];
  t.deepEqual(
    findPlainNames('a.ts', code.join('\n')).map(
      ({ position, word, instead }) => `${position} ${word}: ${instead}`,
    ),
    [
      'a.ts:1 told: report, notify, log',
      'a.ts:2 lastTold: report, notify, log',
      'a.ts:2 kept: store, retain',
    ],
  );
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
