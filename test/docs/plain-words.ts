// Finds everyday words for which the field has a term, in documents, comments, messages and titles of tests; prints
// those in the given paths: `node test/docs/plain-words.ts worker`. Only words that can be judged without their
// sentence are included: whether `may` is a permission or `place` a position depends on it.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFiles } from '../support/listed-files.ts';
import { generatedSections } from './generated-sections.ts';

const root = join(import.meta.dirname, '..', '..');

/** Each with its replacement. */
const terms: readonly (readonly [RegExp, string])[] = [
  [/\b(?:tells?|telling|told)\b/gi, 'report, notify, log, include; distinguish'],
  [/\b(?:says?|said|saying)\b/gi, 'report, state, name, contain, declare'],
  [/\b(?:hears?|heard)\b/gi, 'receive, be notified'],
  [/\bkn(?:ows?|own|ew) of\b/gi, 'have, be notified of'],
  [/\blook(?:s|ed|ing)?\b(?! like)/gi, 'poll, check, read, search, peek'],
  [/\b(?:go|goes|going|went|gone) on\b/gi, 'continue, resume'],
  [/\b(?:comes?|came|coming) back\b/gi, 'reconnect, recover, return'],
  [/\b(?:is|are|was|were) there again\b/gi, 'can be reached again'],
  [/\banew\b/gi, 'again, start empty, restart'],
  [/\b(?:hold|holds|held|holding) up\b/gi, 'block, delay'],
  [/\b(?:stand|stands|stood|standing) still\b/gi, 'stall'],
  [/\bbrief(?:s|ed|ing)?\b/gi, 'start, configure'],
  [/\bdeeds?\b/gi, 'audit entry'],
  [/\btwins?\b/gi, 'copy'],
  [/\blast come\b/gi, 'newest'],
  [/\btroubles?\b/gi, 'error, problem'],
  [/(?<!:)\bauthorit(?:y|ies)\b/gi, 'CA'],
  [/\b(?:some|no|every|any)body\b/gi, 'the caller, no worker, all workers, operators'],
  [/\bpeople\b/gi, 'operators, users, authors'],
  [/\b(?:that|which) (?:is|are) none\b/gi, 'invalid'],
  [/\bhits that were too many\b/gi, 'hits over the limit'],
];

export interface FoundWord {
  readonly place: string;
  readonly word: string;
  readonly instead: string;
  readonly text: string;
}

/** Finds each of the `terms` in the sentences of a file. */
export function findPlainWords(file: string, content: string): FoundWord[] {
  const sentences = file.endsWith('.md')
    ? sentencesOfPage(file, content)
    : sentencesOfCode(
        content,
        /\.(?:ts|mjs|js|proto)$/.test(file) ? commentOfCode : commentOfConfig,
      );
  return sentences.flatMap(({ text, line }) =>
    terms.flatMap(([pattern, instead]) =>
      [...text.matchAll(pattern)].map(([word]) => ({
        place: `${file}:${line}`,
        word,
        instead,
        text,
      })),
    ),
  );
}

interface Sentence {
  readonly text: string;
  readonly line: number;
}

/** Lines without code blocks, inline code and link targets; generated text is checked in its source. */
function sentencesOfPage(file: string, content: string): Sentence[] {
  const blank = (text: string) => text.replace(/[^\n]/g, ' ');
  let text = content.replace(/^ *```.*?^ *```/gms, blank).replace(/`[^`]*`/g, blank);
  for (const { document, mark } of generatedSections) {
    if (!fileURLToPath(document).endsWith(`/${file}`)) continue;
    const section = new RegExp(`<!-- ${mark}:begin -->.*<!-- ${mark}:end -->`, 's');
    text = text.replace(section, blank);
  }
  const lines = text.replace(/\]\([^)]*\)/g, blank).split('\n');
  return lines.map((line, at) => ({ text: line, line: at + 1 }));
}

/** A comment up to the end of its line. A line of a block comment begins with `*`. */
const commentOfCode = /(?:(?<=^\s*)\*(?!\/)|(?<=^|[\s;,{}()])(?:\/\/|\/\*\*?))(.*)$/;
const commentOfConfig = /(?<=^|\s|\{\{)(?:#|\/\*)(.*)$/;
const quoted = /(['"`])((?:\\.|(?!\1).)*)\1/g;

/** Comments, and texts of at least two words. Texts that span several lines are not recognized. */
function sentencesOfCode(content: string, comment: RegExp): Sentence[] {
  return content.split('\n').flatMap((line, at) => {
    const isComment = comment.exec(line)?.index === line.search(/\S/);
    const texts = isComment ? [] : [...line.matchAll(quoted)].map(([, , text = '']) => text);
    const [, remark = ''] = comment.exec(isComment ? line : line.replace(quoted, "''")) ?? [];
    const sentences = texts
      .map((text) => text.replace(/\$\{[^}]*\}/g, '0'))
      .filter((text) => /\w \w/.test(text));
    return [...sentences, remark.replace(/`[^`]*`/g, ' ')].map((text) => ({ text, line: at + 1 }));
  });
}

export const readPlainWords = (...patterns: string[]): FoundWord[] =>
  listFiles(...patterns)
    .filter(
      (file) =>
        /\.(?:md|ts|mjs|js|proto|ya?ml|tpl|txt)$/.test(file) || basename(file) === 'Dockerfile',
    )
    .flatMap((file) => findPlainWords(file, readFileSync(join(root, file), 'utf8')));

if (import.meta.main) {
  const found = readPlainWords(...process.argv.slice(2));
  for (const { place, word, instead, text } of found) {
    process.stdout.write(`${place}: '${word}': ${instead}: ${text.trim()}\n`);
  }
  process.stdout.write(`${found.length} words\n`);
}
