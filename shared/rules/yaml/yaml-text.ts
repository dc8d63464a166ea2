// Parses YAML text into the library's nodes: checks syntax, and bounds the cost of one document. yaml-tree.ts resolves
// scalars, aliases and merges.
import type { CST, ParsedNode, YAMLParseError } from 'yaml';
import { loadLibrary } from '../../library.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import { findOddCharacter } from '../problem/odd-character.ts';
import type { Reporter } from '../problem/reporter.ts';
import { conflictHint, describeForeignLine, findConflictMark } from './foreign-syntax.ts';

/** The library, loaded with the first text that yaml-ordinary.ts leaves to it. */
export const yamlLibrary = () => loadLibrary('yaml') as typeof import('yaml');

/** The library allocates about 300 bytes for each lexeme; an ordinary rule has 40 of them. */
const maxLexemes = 2_000_000;
/** A longer line is searched for mistakes only up to this length. */
const maxDescribedLine = 1_000;
/** The library recurses, so this limit guards the stack. A level of descriptors is two levels of YAML. */
export const maxDepth = 200;

/**
 * The root node of the first document in a checked text; null when the document is empty. Undefined when it cannot be
 * read, which was then reported.
 */
export function parseYamlText(text: string, reporter: Reporter): ParsedNode | null | undefined {
  const tokens = readFirstDocument(text, reporter);
  return tokens && composeDocument(tokens, text, reporter);
}

/** The tokens up to the second document; undefined when a bound was exceeded. */
function readFirstDocument(text: string, reporter: Reporter): CST.Token[] | undefined {
  const { Lexer, Parser } = yamlLibrary();
  const tokens: CST.Token[] = [];
  const parser = new Parser();
  let documents = 0;
  let lexemes = 0;

  function addAll(parsed: Iterable<CST.Token>): void {
    for (const token of parsed) {
      if (token.type === 'document' && ++documents === 2 && token.value !== undefined) {
        const hint = 'put each domain into a file of its own';
        const [, domain] = /^domain:[ \t]*(\S.*)$/m.exec(text.slice(token.offset)) ?? [];
        const lost = domain ? `domain ${toExcerpt(domain)}` : 'all from here on';
        const message = `only the first document of a file is read: ${lost} is lost`;
        reporter.advise('further-document', token.offset, '', message, hint);
      }
      if (documents < 2) tokens.push(token);
    }
  }

  for (const lexeme of new Lexer().lex(text)) {
    addAll(parser.next(lexeme));
    if (documents === 2) return tokens;
    if (parser.stack.length > maxDepth) {
      reporter.error('too-large', parser.offset, '', `nested more than ${maxDepth} levels deep`);
      return undefined;
    }
    if (++lexemes > maxLexemes) {
      const message = `the document has more than ${maxLexemes} parts`;
      const hint = 'split the document into several files';
      reporter.error('too-large', parser.offset, '', message, hint);
      return undefined;
    }
  }
  addAll(parser.end());
  return tokens;
}

function composeDocument(
  tokens: readonly CST.Token[],
  source: string,
  reporter: Reporter,
): ParsedNode | null | undefined {
  const composer = new (yamlLibrary().Composer)({
    version: '1.1',
    // Scalars stay text here, so that their source is kept.
    schema: 'failsafe',
    resolveKnownTags: false,
    uniqueKeys: false,
    logLevel: 'silent',
  });
  const stackTraceLimit = Error.stackTraceLimit;
  // The library makes an Error of each mistake, and a hostile text can contain a million of them.
  Error.stackTraceLimit = 0;
  try {
    const [document] = composer.compose(tokens, true, source.length);
    let first = document?.errors[0];
    for (const error of document?.errors ?? []) {
      if (first && error.pos[0] < first.pos[0]) first = error;
    }
    if (!first) return document?.contents ?? null;
    const conflict = findConflictMark(source);
    if (conflict !== undefined) {
      const message = 'not valid YAML: a mark of a merge conflict';
      reporter.error('yaml-syntax', conflict, '', message, conflictHint);
      return undefined;
    }
    // One mistake makes several syntax errors, so only the first is reported.
    const text = toExcerpt(first.message, 120);
    const message = `not valid YAML: ${text.charAt(0).toLowerCase()}${text.slice(1)}`;
    const offset = locateError(first, document?.contents ?? null, source);
    const hint =
      describeLine(source, offset) ??
      describeColumn(first, reporter.position(offset)?.line, source) ??
      describeRepair(first);
    reporter.error('yaml-syntax', offset, '', message, hint);
    return undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Where an author would search for the mistake, which is not always where the library detected it. */
function locateError(error: YAMLParseError, contents: ParsedNode | null, text: string): number {
  let offset = Math.min(error.pos[0], text.length);
  if (error.message.startsWith('Missing closing') && contents !== null) {
    // Detected at the end of the text: the mistake is the quote that was opened last.
    yamlLibrary().visit(contents, {
      Scalar(_, { type, range }) {
        if (type?.startsWith('QUOTE') && range) offset = range[0];
      },
    });
    return offset;
  }
  while (text[offset] === ' ') offset++;
  return offset;
}

/** The hint for a mistake that the line alone shows; undefined without one. */
function describeLine(text: string, offset: number): string | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset);
  const line = text.slice(start, end === -1 ? undefined : end).slice(0, maxDescribedLine);
  const odd = findOddCharacter(line);
  if (odd?.replacement === ' ') {
    return `column ${odd.index + 1} is ${odd.description}: write an ordinary space`;
  }
  const foreign = describeForeignLine(line);
  if (foreign !== undefined) return foreign;
  const [, key, value] = /^ *(?:- +)*([A-Za-z_]+):([^\s:/].*)$/.exec(line) ?? [];
  return key !== undefined && value !== undefined
    ? `write a space after the colon: '${key}: ${toExcerpt(value)}'`
    : undefined;
}

function describeColumn(
  { code, message }: YAMLParseError,
  line: number | undefined,
  source: string,
): string | undefined {
  const isOfColumns = columnErrors.has(code) && !message.startsWith('Missing closing');
  return isOfColumns && line !== undefined ? describeWrongColumn(source, line) : undefined;
}

/** Errors that a key at the wrong column can make. */
const columnErrors: ReadonlySet<string> = new Set([
  'BAD_INDENT',
  'BLOCK_AS_IMPLICIT_KEY',
  'MISSING_CHAR',
  'UNEXPECTED_TOKEN',
]);

function describeRepair({ code, message }: YAMLParseError): string | undefined {
  if (code !== 'MISSING_CHAR') return repairs.get(code);
  if (message.startsWith('Missing closing')) return 'close this quote';
  if (message.includes('followed by')) return "a key is followed by ': ' and its value";
  return 'check the indentation, and the character before this one';
}

const repairs: ReadonlyMap<string, string> = new Map([
  ['TAB_AS_INDENT', 'indent with spaces'],
  ['BAD_SCALAR_START', 'write the value in quotes'],
  ['BAD_ALIAS', "a value that begins with '*' is written in quotes"],
  ['BAD_DQ_ESCAPE', 'double a backslash in double quotes, or use single quotes'],
  [
    'BLOCK_AS_IMPLICIT_KEY',
    "check the indentation of this line and the next; a value that holds ': ' is written in quotes",
  ],
  ['MULTILINE_IMPLICIT_KEY', "a key is followed by ': ' on its own line"],
  ['BAD_INDENT', 'check the indentation, and that each bracket and brace is closed'],
]);

// A key that begins in another column than the keys around it: YAML reports this as various syntax errors, often on the
// line before.

interface KeyPosition {
  readonly name: string;
  /** Both 1-based. */
  readonly line: number;
  readonly column: number;
  /** Whether a `-` precedes it. */
  readonly isFirst: boolean;
  /** Whether a value follows its colon, so that nothing is nested below it. */
  readonly hasValue: boolean;
}

/** A longer line is cut. */
const maxLineLength = 1_000;
/** How many lines after the error are searched. */
const maxLinesBelow = 10;

/**
 * The hint for a syntax error in `line`, 1-based: the mistake is there or at the next key. Undefined when all keys
 * begin in valid columns.
 */
function describeWrongColumn(text: string, line: number): string | undefined {
  const open: KeyPosition[] = [];
  for (const [index, content] of text.split('\n', line + maxLinesBelow).entries()) {
    const key = readKey(content.slice(0, maxLineLength), index + 1);
    if (key === undefined) continue;
    const left = open.filter(({ column }) => column > key.column);
    open.splice(open.length - left.length);
    const above = open.at(-1);
    if (key.line >= line && !key.isFirst && above !== undefined) {
      const isAligned = above.column === key.column;
      const isNested = above.column < key.column && !above.hasValue && left.length === 0;
      if (!isAligned && !isNested) return describe(key, nearest(key, [above, ...left]));
      if (key.line > line) return undefined;
    }
    if (above?.column === key.column) open.pop();
    open.push(key);
  }
  return undefined;
}

function readKey(content: string, line: number): KeyPosition | undefined {
  const [before, spaces = '', dashes = '', name = ''] =
    /^( *)((?:- +)*)([\w.-]+):(?=\s|$)/.exec(content) ?? [];
  if (before === undefined) return undefined;
  const rest = content.slice(before.length).trim();
  const hasValue = rest !== '' && !rest.startsWith('#');
  const column = spaces.length + dashes.length + 1;
  return { name, line, column, isFirst: dashes !== '', hasValue };
}

function nearest(
  { column }: KeyPosition,
  positions: readonly KeyPosition[],
): KeyPosition | undefined {
  const distance = (position: KeyPosition) => Math.abs(position.column - column);
  return [...positions].sort((a, b) => distance(a) - distance(b) || b.column - a.column)[0];
}

function describe(key: KeyPosition, sibling: KeyPosition | undefined): string | undefined {
  if (sibling === undefined) return undefined;
  const position = `${key.line}:${key.column}`;
  const target = `column ${sibling.column}, below '${toExcerpt(sibling.name)}' at ${sibling.line}:${sibling.column}`;
  return `'${toExcerpt(key.name)}' at ${position} begins at the wrong column: move it to ${target}`;
}
