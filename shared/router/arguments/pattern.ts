// Decides which regular expressions a schema may use: those that a backtracking matcher finishes quickly
// on any text. It counts the ways to match one text, since a matcher may try each to its end.
import { type PatternNode, parsePattern } from './pattern-tree.ts';

/** Cost limit as a multiple of linear time: one repetition that may end anywhere in a text of 256
 * characters. A body of 1 MiB of such text then takes some tenths of a second. */
const mostWays = 257;

/**
 * The reason why a pattern, known to compile, may take far more than linear time on a text of `maxLength`
 * characters, or undefined. Conservative: a group that is repeated may hold no further repetition and no
 * choice, such as `?` is, unless it is a fixed number; lookarounds and back-references are refused.
 */
export function whyNotLinear(
  pattern: string,
  maxLength = Number.POSITIVE_INFINITY,
): string | undefined {
  let tree: PatternNode;
  try {
    tree = parsePattern(pattern);
  } catch (error) {
    return (error as Error).message;
  }
  if (repeatsChoice(tree)) return 'it repeats a group that holds a repetition or a choice';
  const overlap = createOverlap(/\(\?[ims-]+:/.test(pattern));
  const isFast = (length: number) => countTries(tree, length, overlap) <= mostWays;
  if (isFast(maxLength)) return undefined;
  let bound = mostWays;
  while (bound > 0 && !isFast(bound)) bound -= 1;
  const remedies = [
    ...(bound > 0 ? [`declare a maxLength of ${bound} or less beside it`] : []),
    isAnchored(tree)
      ? 'let what follows a repetition begin with a character that the repetition cannot take'
      : 'begin it with ^',
  ];
  return `one text can be read in too many ways; ${remedies.join(', or ')}`;
}

/** For each character of the text. */
function countTries(tree: PatternNode, length: number, overlap: Overlap): number {
  // Attempts start at each place, and run as far as they can without a match.
  const starts = isAnchored(tree) ? 1 : Math.max(1, Math.min(length, longestFailureOf(tree)));
  return starts * countWays(tree, [], length, overlap);
}

/** `next` is the set of characters that may follow the node. Where the next character decides whether a
 * repetition continues, or which branch is taken, all ways but one end at once. */
function countWays(
  node: PatternNode,
  next: readonly string[],
  length: number,
  overlap: Overlap,
): number {
  if (node.kind === 'character' || node.kind === 'place') return 1;
  if (node.kind === 'repetition') {
    const inside = countWays(node.item, next, length, overlap);
    if (!overlap(firstOf(node.item, []), next)) return inside;
    return inside * Math.max(1, Math.min(node.most, length) - node.least + 1);
  }
  if (node.kind === 'choice') {
    const ways = node.branches.map((branch) => countWays(branch, next, length, overlap));
    const firsts = node.branches.map((branch) => firstOf(branch, next));
    const isClear = firsts.every((one, index) =>
      firsts.slice(index + 1).every((other) => !overlap(one, other)),
    );
    return isClear ? Math.max(...ways) : ways.reduce((sum, count) => sum + count);
  }
  let ways = 1;
  let after = next;
  for (const item of node.items.toReversed()) {
    ways *= countWays(item, after, length, overlap);
    after = firstOf(item, after);
  }
  return ways;
}

/** The characters it may begin with, including `next` where the node may be empty. */
function firstOf(node: PatternNode, next: readonly string[]): readonly string[] {
  if (node.kind === 'character') return [node.source];
  if (node.kind === 'place') return next;
  if (node.kind === 'choice') return node.branches.flatMap((branch) => firstOf(branch, next));
  if (node.kind === 'sequence') {
    return node.items.reduceRight((after, item) => firstOf(item, after), next);
  }
  return [...firstOf(node.item, next), ...(node.least === 0 ? next : [])];
}

function longestOf(node: PatternNode): number {
  if (node.kind === 'character') return 1;
  if (node.kind === 'place') return 0;
  if (node.kind === 'choice') return Math.max(...node.branches.map(longestOf));
  if (node.kind === 'sequence') return node.items.reduce((sum, item) => sum + longestOf(item), 0);
  const length = longestOf(node.item);
  return length === 0 ? 0 : length * node.most;
}

/** A repetition at the very end matches with its minimum. */
function longestFailureOf(node: PatternNode): number {
  if (node.kind === 'repetition') return node.least === 0 ? 0 : longestOf(node.item) * node.least;
  if (node.kind === 'choice') return Math.max(...node.branches.map(longestFailureOf));
  if (node.kind !== 'sequence') return longestOf(node);
  const [last, ...before] = node.items.toReversed();
  return last === undefined
    ? 0
    : longestFailureOf(last) + before.reduce((sum, item) => sum + longestOf(item), 0);
}

function isAnchored(node: PatternNode): boolean {
  if (node.kind === 'place') return node.source === '^';
  if (node.kind === 'choice') return node.branches.every(isAnchored);
  return node.kind === 'sequence' && node.items[0] !== undefined && isAnchored(node.items[0]);
}

function repeatsChoice(node: PatternNode): boolean {
  const isRepeated = node.kind === 'repetition' && node.most > 1;
  return insideOf(node).some(isRepeated ? holdsChoice : repeatsChoice);
}

function holdsChoice(node: PatternNode): boolean {
  if (node.kind === 'choice') return true;
  if (node.kind === 'repetition' && node.least !== node.most) return true;
  return insideOf(node).some(holdsChoice);
}

function insideOf(node: PatternNode): readonly PatternNode[] {
  if (node.kind === 'sequence') return node.items;
  if (node.kind === 'choice') return node.branches;
  return node.kind === 'repetition' ? [node.item] : [];
}

/** Whether some character is among both. */
type Overlap = (some: readonly string[], others: readonly string[]) => boolean;

/** Under flags such as `(?i:`, all characters are taken to overlap. */
function createOverlap(hasFlags: boolean): Overlap {
  const known = new Map<string, boolean>();
  function overlap(one: string, other: string): boolean {
    if (hasFlags || one === other) return true;
    const both = `(?=${one})${other}`;
    let result = known.get(both);
    if (result === undefined) {
      const most = isAscii.test(one) || isAscii.test(other) ? 0x7f : 0x10ffff;
      result = new RegExp(both, 'u').test(charactersTo(most));
      known.set(both, result);
    }
    return result;
  }
  return (some, others) => some.some((one) => others.some((other) => overlap(one, other)));
}

/** Sources with ASCII characters only, as most are: few to test. */
const isAscii =
  /^(?:[^\\.[\u0080-\u{10ffff}]|\\[dw\W]|\[(?!\^)(?:[^\\\]\u0080-\u{10ffff}]|\\[dw\W])*\])$/u;

/** Descending, so that no two surrogates form a pair. */
function charactersTo(last: number): string {
  let text = '';
  for (let code = last; code >= 0; code -= 1) text += String.fromCodePoint(code);
  return text;
}
