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

/** Parts of names, each with its replacement. */
const nameTerms: readonly (readonly [RegExp, string])[] = [
  [/^(?:tells?|telling|told)$/, 'report, notify, log'],
  [/^(?:says?|said|saying)$/, 'log, report, describe; verdict'],
  [/^(?:hears?|heard)$/, 'receive'],
  [/^(?:look|looks|looked|looking)$/, 'poll, check, read, search, peek'],
  [/^(?:takes?|took|taken|taking)$/, 'accept, receive, drain, acquire, apply'],
  [/^(?:keep|keeps|kept|keeping)$/, 'store, retain'],
  [/^held$/, 'known, pending, buffered'],
  [/^(?:places?|placed|placing)$/, 'position, section, index, address, share'],
  [/^(?:whole|wholes)$/, 'revision, complete, full'],
  [/^anew$/, 'again, restarted'],
  [/^brief$/, 'start, configure'],
  [/^deeds?$/, 'audit entry'],
  [/^twins?$/, 'copy'],
  [/^troubles?$/, 'error, problem'],
  [/^(?:authority|authorities)$/, 'ca'],
  [/^(?:some|no|every|any)body$/, 'the caller, no worker, all workers'],
  [/^people$/, 'operators, users'],
];

/** Names that have such a part with a reason. */
const goodNames: readonly (readonly [RegExp, string])[] = [
  [/(?:taken?|takes?|taking|held)_?back/i, 'a state of a revision, in the glossary'],
  [/takeover|takeOver|takenOver/i, 'a leader takes over'],
  [/[lL]ook(?:ed|ing)?[-_]?(?:[uU]p|[aA]like)/, 'a lookup in the rules or in DNS; characters that look alike'],
  [/keep_?(?:alive|case)/i, 'keep-alive of HTTP and TCP; an option of protobuf'],
  [/[iI]n_?[pP]lace/, 'written in place, not atomically'],
  [/^(?:heldMs|isHeldByAll|toHold.*)$/, 'the hold of a step, as the setting of a rollout names it'],
  [/^HeldByKey$|^#?[hH]eld$/, 'values that V8 holds by their key'],
  [/^whole$/, 'a field of the record on disk'],
  [/^tookMs$|^took$/, 'how long it took'],
  [/^looks$/, 'a field of the admin API'],
  [/^deeds$/, 'a field of the admin API'],
  [/^word(?:s)?$/, 'a word of a text'],
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

/** Strings and comments, but not what a template inserts. */
const notCode =
  /\/\*[\s\S]*?\*\/|(?<=^|[\s;,{}()])\/\/.*$|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|\$(?!\{)|[^`\\$])*`/gm;
const capital = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_$]+/;

/** Finds the names in the code of a file that have one of the `nameTerms`, each once. */
export function findPlainNames(file: string, content: string): FoundWord[] {
  const blank = (text: string) => text.replace(/[^\n]/g, ' ');
  const found = new Map<string, FoundWord>();
  for (const [at, line] of content.replace(notCode, blank).split('\n').entries()) {
    for (const [name] of line.matchAll(/[A-Za-z_$][\w$]*/g)) {
      if (found.has(name) || goodNames.some(([pattern]) => pattern.test(name))) continue;
      const parts = name.split(capital).map((part) => part.toLowerCase());
      const [, instead] = nameTerms.find(([pattern]) => parts.some((part) => pattern.test(part))) ?? [];
      if (instead !== undefined) {
        found.set(name, { place: `${file}:${at + 1}`, word: name, instead, text: line });
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
  for (const { place, word, instead, text } of found) {
    process.stdout.write(`${place}: '${word}': ${instead}: ${text.trim()}\n`);
  }
  process.stdout.write(`${found.length} words\n`);
}
