// Reads the subset of YAML that rules files use, many times faster than the library: block mappings and lists, scalars
// and flow collections on one line, comments. It reports no problems: the library (yaml-text.ts) reads any document
// with unusual syntax, valid or not.

import {
  type ScalarValue,
  type TreeEntry,
  type TreeList,
  type TreeMap,
  type TreeNode,
  type TreeScalar,
  toScalarValue,
} from './yaml-node.ts';

/** Far below the depth at which the library's reader refuses a document, so that the library refuses it. */
const maxDepth = 80;
/**
 * More than the longest file of ordinary rules contains: their tree takes 150 MB, the library's three times as much.
 */
const maxScalars = 640_000;

const lineWithoutContent = / *(?:#[^\r\n]*)?\r?\n/y;
const indentation = / */y;
const textEnd = /(?:#[^\r\n]*)?$/y;
/** The characters that may follow a value on its line. */
const lineEnd = / *(?:(?<= )#[^\r\n]*)?(?:\r?\n|$)/y;
const keyText = /([A-Za-z_][\w.-]{0,200}):(?=[ \r\n]|$)/y;
const listMark = /- +(?=[^ \r\n#])/y;
const plainText =
  /(?:[\w./]|-(?=[\w.]))(?:[\w./*+@=~$%()-]|:(?=[\w./*+@=~$%()-])| +(?=[\w./*+@=~$%()-])){0,500}/y;
const quotedText = /'([^'\\\t\r\n]{0,500})'|"([^"\\\t\r\n]{0,500})"/y;
const flowSeparator = / *, */y;
const flowSpace = / */y;

/** Thrown to pass the document to the library. */
const outOfTheOrdinary = new Error('not ordinary YAML');

/** Undefined for a wrong or unusual document, which the library has to read. */
export function readOrdinaryYaml(text: string): TreeNode | undefined {
  try {
    return createReader(text)();
  } catch (error) {
    if (error === outOfTheOrdinary) return undefined;
    throw error;
  }
}

function createReader(text: string): () => TreeNode {
  let at = text.startsWith('---\n') ? 4 : 0;
  /** Indentation of the line whose content begins at `at`; -1 at the end. */
  let column = 0;
  let scalars = 0;

  function skip(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  }

  /** Moves from the beginning of a line to the content of the next line that has any. */
  function toContent(): void {
    while (skip(lineWithoutContent));
    const start = at;
    skip(indentation);
    column = skip(textEnd) ? -1 : at - start;
  }

  function endLine(): void {
    if (!skip(lineEnd)) throw outOfTheOrdinary;
    toContent();
  }

  function toScalar(value: ScalarValue, source: string, start: number): TreeScalar {
    if (++scalars > maxScalars) throw outOfTheOrdinary;
    const isQuoted = text[start] === "'" || text[start] === '"';
    return { kind: value.kind, value: value.value, source, isQuoted, offset: start };
  }

  function readKey(): TreeScalar | undefined {
    keyText.lastIndex = at;
    const source = keyText.exec(text)?.[1];
    if (source === undefined) return undefined;
    const key = toScalar(toScalarValue(source), source, at);
    at = keyText.lastIndex;
    return key;
  }

  /** A scalar or a flow collection on the rest of the line. */
  function readInline(depth: number): TreeNode {
    const start = at;
    const first = text[at];
    if (first === '{') return readFlowMap(depth + 1);
    if (first === '[') return readFlowList(depth + 1);
    if (first === "'" || first === '"') {
      quotedText.lastIndex = at;
      const match = quotedText.exec(text);
      if (match === null) throw outOfTheOrdinary;
      at = quotedText.lastIndex;
      const source = match[1] ?? match[2] ?? '';
      return toScalar({ kind: 'text', value: source }, source, start);
    }
    if (!skip(plainText)) throw outOfTheOrdinary;
    const source = text.slice(start, at);
    return toScalar(toScalarValue(source), source, start);
  }

  function addEntry(entries: Map<string, TreeEntry>, key: TreeScalar, value: TreeNode): void {
    if (entries.has(key.source)) throw outOfTheOrdinary;
    entries.set(key.source, { key, value });
  }

  function readFlowMap(depth: number): TreeMap {
    if (depth > maxDepth) throw outOfTheOrdinary;
    const offset = at++;
    const entries = new Map<string, TreeEntry>();
    skip(flowSpace);
    while (text[at] !== '}') {
      const key = readKey();
      if (key === undefined || !skip(flowSpace)) throw outOfTheOrdinary;
      addEntry(entries, key, readInline(depth));
      if (!endsFlowItem('}')) throw outOfTheOrdinary;
    }
    at++;
    return { kind: 'map', entries, offset };
  }

  function readFlowList(depth: number): TreeList {
    if (depth > maxDepth) throw outOfTheOrdinary;
    const offset = at++;
    const items: TreeNode[] = [];
    skip(flowSpace);
    while (text[at] !== ']') {
      items.push(readInline(depth));
      if (!endsFlowItem(']')) throw outOfTheOrdinary;
    }
    at++;
    return { kind: 'list', items, offset };
  }

  /** Whether another item follows, rather than the `closing` bracket. */
  function endsFlowItem(closing: string): boolean {
    if (skip(flowSeparator)) return text[at] !== closing;
    skip(flowSpace);
    return text[at] === closing;
  }

  function readBlock(depth: number): TreeNode {
    if (depth > maxDepth) throw outOfTheOrdinary;
    return text[at] === '-' ? readList(depth) : readMap(column, depth);
  }

  function readMap(ownColumn: number, depth: number): TreeMap {
    const offset = at;
    const entries = new Map<string, TreeEntry>();
    do {
      const key = readKey();
      if (key === undefined) throw outOfTheOrdinary;
      addEntry(entries, key, readValue(ownColumn, depth));
    } while (column === ownColumn);
    // Deeper than the mapping: a scalar that continues, or a mistake.
    if (column > ownColumn) throw outOfTheOrdinary;
    return { kind: 'map', entries, offset };
  }

  function readValue(ownColumn: number, depth: number): TreeNode {
    if (skip(lineEnd)) {
      toContent();
      // A list may begin in the same column as its key.
      const isBelow = column > ownColumn || (column === ownColumn && text[at] === '-');
      if (!isBelow) throw outOfTheOrdinary;
      return readBlock(depth + 1);
    }
    skip(flowSpace);
    const value = readInline(depth);
    endLine();
    return value;
  }

  function readList(depth: number): TreeList {
    const ownColumn = column;
    const offset = at;
    const items: TreeNode[] = [];
    do {
      const start = at;
      if (!skip(listMark)) throw outOfTheOrdinary;
      items.push(readItem(ownColumn + at - start, depth + 1));
    } while (column === ownColumn && text[at] === '-');
    if (column > ownColumn) throw outOfTheOrdinary;
    return { kind: 'list', items, offset };
  }

  function readItem(itemColumn: number, depth: number): TreeNode {
    keyText.lastIndex = at;
    if (keyText.test(text)) return readMap(itemColumn, depth);
    const value = readInline(depth);
    endLine();
    return value;
  }

  return () => {
    toContent();
    const root = readBlock(0);
    if (column !== -1) throw outOfTheOrdinary;
    return root;
  };
}
