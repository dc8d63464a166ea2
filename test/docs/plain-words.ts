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
  [/\blook(?:s|ed|ing)?\b(?! like| up|-alike)/gi, 'poll, check, read, search, peek'],
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

/** Names that have such a part: where, which, and why. */
const goodNames: readonly (readonly [files: RegExp, name: RegExp, reason: string])[] = [
  [/./, /(?:taken?|takes?|taking|held)_?back/i, 'a state of a revision, in the glossary'],
  [/./, /[tT]ake(?:n)?_?[oO]ver/, 'a leader takes over'],
  [/./, /[lL]ook(?:ed|ing)?_?[uU]p/, 'a lookup of rules or in DNS'],
  [/./, /[lL]ook_?[aA]like/, 'characters that look alike'],
  [/./, /[kK]eep_?(?:[aA]live|[cC]ase)/, 'of HTTP and TCP; an option of protobuf'],
  [/./, /[iI]n_?[pP]lace/, 'written in place, not atomically'],
  [/./, /^took(?:Ms)?$/, 'how long it took'],
  [/rollout/, /^held(?:Ms)?$|^isHeldByAll$/, 'the hold of a step, as its setting names it'],
  [/rollout|record|fault|test\/support/, /^whole$/, 'a field of the record'],
  [/./, /^HeldByKey$|^#?[hH]eld$/, 'what V8 holds by its key'],
  [/./, /^looks$/, 'a field of the API between control planes'],
  [/redis-settings/, /^whole$/, 'a value of a setting'],
  [/audit|activity|\/minute/, /^deeds$/, 'a field of the admin API'],
  [
    /coverage|fleet-status|command\/test|controllers\/(?:index|domains)|status-report|verdict|change-page/,
    /^place$|^RulePlace$/,
    'a field of JSON for users',
  ],
  [/controllers\/index/, /^look$/, 'a parameter of the admin API'],
  [/\/request-head\.ts/, /^authority$/, 'a header of HTTP/2'],
  [
    /remembering\.test|scenarios\.test|watch\.test|status-report\.test|verdict\.test/,
    /^(?:look|told|kept|held|says|trouble|nobody)$/,
    'a word of reviewed lines',
  ],
  [/router-package|client-fields/, /^(?:taken|everybody)$/, 'of the application that is tested'],
];

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
    terms.flatMap(([pattern, instead]) =>
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
  return goodNames.some(([files, names]) => files.test(file) && names.test(name));
}

/** Finds the names in the code of a file that have one of the `nameTerms`, each once. */
export function findPlainNames(file: string, content: string): FoundWord[] {
  const found = new Map<string, FoundWord>();
  for (const [at, line] of codeOf(content).split('\n').entries()) {
    for (const [name] of line.matchAll(ownName)) {
      if (found.has(name) || isGood(file, name)) continue;
      const parts = name.split(partEnd).map((part) => part.toLowerCase());
      const [, instead] =
        nameTerms.find(([pattern]) => parts.some((part) => pattern.test(part))) ?? [];
      if (instead !== undefined) {
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
