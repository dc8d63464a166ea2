// Finds everyday words for which the field has a term, in documents, comments, messages and titles of tests; prints
// those in the given paths: `node test/docs/plain-words.ts worker`. Only words that can be judged without their
// sentence are included: whether `may` is a permission or `place` a position depends on it.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFiles } from '../support/listed-files.ts';
import { generatedSections } from './generated-sections.ts';

const root = join(import.meta.dirname, '..', '..');

/** The three lists of plain-words.txt. */
const [terms = [], nameTerms = [], goodNames = []] = readFileSync(
  join(import.meta.dirname, 'plain-words.txt'),
  'utf8',
)
  .split(/^# .*\n/m)
  .slice(1)
  .map((list, at) =>
    list
      .trim()
      .split('\n')
      .map((line) => {
        const [pattern = '', ...rest] = line.split(' → ');
        const name = new RegExp(at === 2 ? (rest[0] ?? '') : '');
        return { pattern: new RegExp(pattern, at === 0 ? 'gi' : ''), name, instead: rest[0] ?? '' };
      }),
  );

export interface FoundWord {
  readonly position: string;
  readonly word: string;
  readonly instead: string;
  readonly text: string;
}

/** Finds each of the `terms` in the sentences of a file. */
export function findPlainWords(file: string, content: string): FoundWord[] {
  const isCode = /\.(?:ts|mjs|js|proto)$/.test(file);
  const comment = isCode ? commentOfCode : file.endsWith('.txt') ? title : commentOfConfig;
  const isPage = /\.md$|NOTES\.txt$/.test(file);
  const sentences = isPage ? sentencesOfPage(file, content) : sentencesOfCode(content, comment);
  return sentences.flatMap(({ text, line }) =>
    terms.flatMap(({ pattern, instead }) =>
      [...text.matchAll(pattern)].map(([word]) => ({
        position: `${file}:${line}`,
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
/** Of a reviewed scenario, or of a reviewed line: `TITLE | ...`. */
const title = /^(?:#|===|(?=[^$|]+ \| ))([^|]*)/;
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

const mark = new RegExp(
  [
    ...[/\/\/[^\n]*/, /\/\*[\s\S]*?\*\//, /'(?:\\.|[^'\\\n])*'/, /"(?:\\.|[^"\\\n])*"/, /[`{}]/],
    // An expression, not a division.
    /(?<=(?:^|[=(,:[!&|?{};>]|return)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gm',
);
const templateText = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*/y;

/** Code without comments and strings, but with what templates insert; lines keep their number. */
function codeOf(content: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, ' ');
  // For each open brace, whether it belongs to a template.
  const braces: boolean[] = [];
  let code = '';
  let at = 0;
  for (;;) {
    mark.lastIndex = at;
    const found = mark.exec(content);
    if (found === null) return code + content.slice(at);
    const [text] = found;
    code += content.slice(at, found.index) + blank(text);
    at = found.index + text.length;
    if (text === '{') braces.push(false);
    if (text !== '`' && !(text === '}' && braces.pop() === true)) continue;
    templateText.lastIndex = at;
    const [inside = ''] = templateText.exec(content) ?? [];
    const isInserted = content.startsWith('${', at + inside.length);
    if (isInserted) braces.push(true);
    const end = at + inside.length + (isInserted ? 2 : 1);
    code += blank(content.slice(at, end));
    at = end;
  }
}

/** Not of a property that is read: its declaration is elsewhere, or in a library. */
const ownName = /(?<![\w$]|(?<!\.)\.)[A-Za-z_$][\w$]*/g;
const partEnd = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_$]+/;

function isGood(file: string, name: string): boolean {
  return goodNames.some(({ pattern, name: names }) => pattern.test(file) && names.test(name));
}

/** Finds the names in the code of a file that have one of the `nameTerms`, each once. */
export function findPlainNames(file: string, content: string): FoundWord[] {
  const found = new Map<string, FoundWord>();
  for (const [at, line] of codeOf(content).split('\n').entries()) {
    for (const [name] of line.matchAll(ownName)) {
      if (found.has(name) || isGood(file, name)) continue;
      const parts = name.split(partEnd).map((part) => part.toLowerCase());
      const term = nameTerms.find(({ pattern }) => parts.some((part) => pattern.test(part)));
      if (term !== undefined) {
        const { instead } = term;
        found.set(name, { position: `${file}:${at + 1}`, word: name, instead, text: line });
      }
    }
  }
  return [...found.values()];
}

export const readPlainNames = (...patterns: string[]): FoundWord[] =>
  listFiles(...patterns)
    .filter((file) => /\.(?:ts|mjs)$/.test(file))
    .flatMap((file) => findPlainNames(file, readFileSync(join(root, file), 'utf8')));

export const readPlainWords = (...patterns: string[]): FoundWord[] =>
  listFiles(...patterns)
    .filter(
      (file) =>
        /\.(?:md|ts|mjs|js|proto|ya?ml|tpl|txt)$/.test(file) || basename(file) === 'Dockerfile',
    )
    .flatMap((file) => findPlainWords(file, readFileSync(join(root, file), 'utf8')));

if (import.meta.main) {
  const paths = process.argv.slice(2);
  const found = [...readPlainWords(...paths), ...readPlainNames(...paths)];
  for (const { position, word, instead, text } of found) {
    process.stdout.write(`${position}: '${word}': ${instead}: ${text.trim()}\n`);
  }
  process.stdout.write(`${found.length} words\n`);
}
