// Reads the fields of a YAML mapping by name, and reports their problems with position and hint. Callers define the
// fields and their meaning.
import { parseDuration } from '../../duration.ts';
import { didYouMean } from '../../nearest-word.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import { describeRepairedWord, withoutOddCharacters } from '../problem/odd-character.ts';
import type { ProblemRule } from '../problem/problem-rule.ts';
import type { Reporter } from '../problem/reporter.ts';
import { describeForeignComment, findPlaceholder, renderHint } from './foreign-syntax.ts';
import { type TreeMap, type TreeNode, toNoun } from './yaml-node.ts';

/** A value with its path. */
export interface LocatedNode {
  readonly node: TreeNode;
  /** A path such as `descriptors[0].rate_limit`. */
  readonly path: string;
}

/** Hints for top-level keys that belong to other files, by the names of the keys. */
const keysOfOtherFiles: ReadonlyMap<string, string> = new Map([
  ['policies', 'a policy is read from policy.yaml at the root of the rules: rename the file'],
  [
    'groups',
    'node groups are read from node-groups.yaml at the root of the rules: rename the file',
  ],
  ['tests', 'tests of rules have a folder of their own, beside that of the rules'],
]);

type Describe = (node: TreeNode) => string | undefined;

/** A method that has reported a problem returns undefined, so that one mistake makes one problem. */
export class MapReader {
  readonly node: TreeMap;
  readonly path: string;
  readonly reporter: Reporter;

  /** `path` is the mapping's path in the document. */
  constructor(node: TreeMap, path: string, reporter: Reporter) {
    this.node = node;
    this.path = path;
    this.reporter = reporter;
  }

  pathOf(name: string): string {
    return joinPath(this.path, name);
  }

  /** The field; undefined only when absent. */
  given(name: string): LocatedNode | undefined {
    const node = this.node.entries.get(name)?.value;
    return node && { node, path: this.pathOf(name) };
  }

  /** The field; undefined when absent or null. */
  find(name: string): TreeNode | undefined {
    const node = this.node.entries.get(name)?.value;
    return node?.kind === 'null' ? undefined : node;
  }

  has(name: string): boolean {
    return this.find(name) !== undefined;
  }

  /** A scalar of any kind, as written; '' when absent or null. */
  text(name: string): string | undefined {
    const node = this.find(name);
    return node === undefined ? '' : this.toText(node, name);
  }

  toText(node: TreeNode, name: string): string | undefined {
    return 'source' in node ? node.source : this.refuse(node, name, 'text');
  }

  /** False when absent or null. */
  flag(name: string): boolean | undefined {
    const node = this.find(name);
    if (node === undefined) return false;
    if (node.kind === 'bool') return node.value === true;
    const hint = isQuoted(node, /^(?:true|false)$/i)
      ? `write it without quotes: ${node.source.toLowerCase()}`
      : undefined;
    return this.refuse(node, name, 'true or false', hint);
  }

  /**
   * A whole number from `min` to `max`; undefined also when absent or null. `describe` returns the hint for a text that
   * is no whole number.
   */
  count(
    name: string,
    max: number,
    min = 0,
    describe?: (text: string) => string | undefined,
  ): number | undefined {
    const node = this.find(name);
    if (node === undefined) return undefined;
    const number = node.kind === 'int' ? Number(node.value) : Number.NaN;
    if (number >= min && number <= max) {
      this.#adviseOnOctal(node, name, number);
      return number;
    }
    let hint: string | undefined;
    const source = 'source' in node ? node.source : undefined;
    const meant = source === undefined ? Number.NaN : toMeantNumber(source);
    if (isQuoted(node, /^[0-9]+$/)) hint = `write it without quotes: ${toExcerpt(node.source)}`;
    else if (number < min && min > 0) hint = 'leave it out for the default';
    else if (meant >= min && meant <= max) hint = `write it in digits: ${meant}`;
    else if (source !== undefined) hint = describe?.(source);
    return this.refuse(node, name, `a whole number from ${min} to ${max}`, hint);
  }

  number(name: string): number | undefined {
    const node = this.find(name);
    return node && this.#toNumber(node, name);
  }

  numbers(name: string): readonly number[] {
    return this.items(name)
      .map(({ node }) => this.#toNumber(node, name))
      .filter((number) => number !== undefined);
  }

  /** The duration in milliseconds. */
  duration(name: string): number | undefined {
    const node = this.find(name);
    if (node === undefined) return undefined;
    const result = parseDuration('source' in node ? node.source : '');
    const isFine = result.ok && result.ms >= 0;
    return isFine ? result.ms : this.refuse(node, name, 'a duration such as 90s or 10m');
  }

  word<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const node = this.find(name);
    if (node === undefined) return undefined;
    const text = 'source' in node ? node.source : undefined;
    const word = words.find((one) => one === text);
    return text === '' || word !== undefined ? word : this.refuse(node, name, words.join(' or '));
  }

  /** Pairs of a name and a text. */
  texts(name: string): readonly (readonly [name: string, text: string])[] {
    const node = this.find(name);
    if (node === undefined) return [];
    if (node.kind !== 'map') return this.refuse(node, name, 'a mapping of names to texts') ?? [];
    const fields = new MapReader(node, this.pathOf(name), this.reporter);
    return [...node.entries.keys()].flatMap((key) => {
      const text = fields.text(key);
      return text === undefined ? [] : [[key, text] as const];
    });
  }

  /** `describe` returns the hint for a value that is not a mapping. */
  map(name: string, describe?: Describe): MapReader | undefined {
    const node = this.find(name);
    if (node === undefined) return undefined;
    if (node.kind === 'map') return new MapReader(node, this.pathOf(name), this.reporter);
    return this.refuse(node, name, 'a mapping', describe?.(node));
  }

  /** The items of a list; empty also when the value is not a list, for which `describe` returns the hint. */
  items(name: string, describe?: Describe): readonly LocatedNode[] {
    const node = this.find(name);
    if (node === undefined) return [];
    const path = this.pathOf(name);
    if (node.kind === 'list') {
      return node.items.map((item, index) => ({ node: item, path: `${path}[${index}]` }));
    }
    return this.refuse(node, name, 'a list', describe?.(node)) ?? [];
  }

  /** Those items of a list that are mappings. */
  maps(name: string): readonly MapReader[] {
    return this.items(name).flatMap(
      ({ node, path }) => readMap(node, path, `an item of ${name}`, this.reporter) ?? [],
    );
  }

  /** The offset of the field, or of the mapping that lacks it. */
  offsetOf(name: string): number {
    return this.node.entries.get(name)?.value.offset ?? this.node.offset;
  }

  /** Reports an error at the field, or at the mapping that lacks it. */
  error(rule: ProblemRule, name: string, message: string, hint?: string): void {
    this.reporter.error(rule, this.offsetOf(name), this.pathOf(name), message, hint);
  }

  /** Reports an error of the mapping itself. */
  errorOfAll(rule: ProblemRule, message: string, hint?: string): void {
    this.reporter.error(rule, this.node.offset, this.path, message, hint);
  }

  /** Reports a warning or note, as `error` reports an error. */
  advise(rule: ProblemRule, name: string, message: string, hint?: string): void {
    this.reporter.advise(rule, this.offsetOf(name), this.pathOf(name), message, hint);
  }

  /** Reports that the field is not `wanted`. */
  refuse(node: TreeNode, name: string, wanted: string, hint?: string): undefined {
    reportKind({ node, path: this.pathOf(name) }, name, wanted, this.reporter, hint);
  }

  /** Reports keys that are not in `known`; returns the known ones that they certainly stand for. */
  refuseOthers(known: readonly string[]): ReadonlySet<string> {
    const meant = new Set<string>();
    for (const name of this.node.entries.keys()) {
      const guess = known.includes(name) ? undefined : this.refuseKey(name, known);
      if (guess !== undefined) meant.add(guess);
    }
    return meant;
  }

  /** Reports an unknown key of the mapping; returns the key of `known` that is most likely meant, if any. */
  refuseKey(name: string, known: readonly string[]): string | undefined {
    const key = this.node.entries.get(name)?.key;
    const shown = toExcerpt(name);
    const others = `keys here: ${listOf(known)}`;
    const report = (message: string, hint: string) =>
      this.reporter.error('unknown-key', key?.offset, this.pathOf(name), message, hint);
    if (key?.kind !== 'text') {
      report(`key is not of type string: ${shown === '' ? "''" : shown}`, others);
      return undefined;
    }
    const [, beforeColon, afterColon] = /^([^:]+):(.+)$/s.exec(name) ?? [];
    const guess = this.reporter.nearestWord(withoutOddCharacters(beforeColon ?? name), known);
    const spaced =
      guess !== undefined && afterColon !== undefined
        ? `write a space after the colon: '${guess}: ${toExcerpt(afterColon)}'`
        : didYouMean(guess);
    const elsewhere = this.path === '' ? keysOfOtherFiles.get(name) : undefined;
    const hint = elsewhere ?? describeRepairedWord(name, guess) ?? spaced ?? others;
    report(`unknown key '${shown}'`, hint);
    return guess;
  }

  /** Warns of keys that are not in `known`. */
  warnOfOthers(known: readonly string[]): void {
    for (const [name, { key }] of this.node.entries) {
      if (known.includes(name)) continue;
      const hint = didYouMean(this.reporter.nearestWord(name, known));
      const message = `${toExcerpt(name)} has no effect here`;
      this.reporter.advise('misplaced-key', key.offset, this.pathOf(name), message, hint);
    }
  }

  #adviseOnOctal(node: TreeNode, name: string, number: number): void {
    const [, digits] = ('source' in node && /^0([0-7]+)$/.exec(node.source)) || [];
    if (digits === undefined || Number(digits) === number) return;
    const message = `${name} is 0${digits}, which YAML reads as the octal number for ${number}`;
    this.advise('octal-number', name, message, `write ${digits} or ${number}`);
  }

  #toNumber(node: TreeNode, name: string): number | undefined {
    const isNumber = node.kind === 'int' || node.kind === 'float';
    if (isNumber && !Number.isNaN(node.value)) return Number(node.value);
    return this.refuse(node, name, 'a number');
  }
}

/** Undefined when it is not a mapping, which has been reported; `name` is its name in messages. */
export function readMap(
  node: TreeNode,
  path: string,
  name: string,
  reporter: Reporter,
): MapReader | undefined {
  if (node.kind === 'map') return new MapReader(node, path, reporter);
  reportKind({ node, path }, name, 'a mapping', reporter);
  return undefined;
}

/** Reports that a value is not `wanted`; `name` is its name in messages. */
export function reportKind(
  { node, path }: LocatedNode,
  name: string,
  wanted: string,
  reporter: Reporter,
  hint?: string,
): void {
  if (node.kind === 'gap') return;
  const text = 'source' in node ? node.source : undefined;
  const kind = text === undefined ? `a ${toNoun(node)}` : `'${toExcerpt(text)}'`;
  const message = `${toExcerpt(name)} is ${text === '' ? 'empty' : kind}, not ${wanted}`;
  const oddity = text === undefined ? undefined : describeOddity(text);
  reporter.error('value-type', node.offset, path, message, oddity ?? hint);
}

function describeOddity(text: string): string | undefined {
  const isTemplate = findPlaceholder(text) !== undefined;
  return isTemplate
    ? renderHint
    : (describeForeignComment(text) ?? describeRepairedWord(text, undefined));
}

/** The whole number that a text such as `10k`, `10,000` or `1e4` means; NaN without one. */
function toMeantNumber(text: string): number {
  if (/^\d{1,3}(?:[,' ]\d{3}){1,3}$/.test(text)) return Number(text.replaceAll(/\D/g, ''));
  const [, digits, letter] = /^(\d{1,10}(?:\.\d{1,6})?(?:e\d)?) ?([km])?$/i.exec(text) ?? [];
  const factor = letter === undefined ? 1 : letter.toLowerCase() === 'k' ? 1_000 : 1_000_000;
  const number = Number(digits) * factor;
  return Number.isInteger(number) ? number : Number.NaN;
}

export function joinPath(path: string, key: string): string {
  return path === '' ? toExcerpt(key) : `${path}.${toExcerpt(key)}`;
}

export function listOf(words: readonly string[]): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function isQuoted(node: TreeNode, pattern: RegExp): node is TreeNode & { readonly source: string } {
  return 'isQuoted' in node && node.isQuoted && pattern.test(node.source);
}
