// Finds wildcards that have changed places: text that two of them match then finds another rule, although no rule has
// changed (behaviour: lookup-order). Pure.
import type { LocatedRule } from '../../shared/rules/lookup/located-rule.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import { toCompositeKey } from '../../shared/rules/rule-document.ts';

/** Two rules of one level; `now` has moved in front of `was`. */
export interface ChangedPositions {
  /** The entries of the rules above. */
  readonly above: readonly Entry[];
  /** The text that both match, with `*` for any characters; undefined if finding it takes too long. */
  readonly entry: Entry | undefined;
  readonly was: LocatedRule;
  readonly now: LocatedRule;
}

/** The largest product of two patterns' lengths that is compared, and the limit for the sum of these products. */
const maxProduct = 100_000;
const maxCompared = 20_000_000;
/** The additional cost of each pair, in the same unit. */
const ofEach = 100;

/** If there are more pairs than can be compared, ends with a pair without an entry. In steps. */
export function* findingChangedPositions(
  before: readonly LocatedRule[],
  after: readonly LocatedRule[],
): Generator<ChangedPositions | undefined, void> {
  let left = maxCompared;

  function* visit(
    one: readonly LocatedRule[],
    other: readonly LocatedRule[],
    above: readonly Entry[],
  ): Generator<ChangedPositions | undefined, void> {
    const positions = new Map<string, Omit<Ordered, 'now'>>();
    for (const [index, was] of one.entries()) {
      yield undefined;
      positions.set(was.composite, { was, index });
    }
    const ordered: Ordered[] = [];
    for (const now of other) {
      yield undefined;
      const known = positions.get(now.composite);
      if (known === undefined) continue;
      const { key, value } = now.descriptor;
      if (known.was.children.length > 0 && now.children.length > 0) {
        yield* visit(known.was.children, now.children, [...above, { key, value }]);
      }
      if (now.isWildcard) ordered.push({ ...known, now });
    }
    for (const pair of listingOvertaken(ordered)) {
      yield undefined;
      if (pair === undefined) continue;
      if (left < 0) return;
      const [first, second] = pair;
      const product = first.now.composite.length * second.now.composite.length;
      left -= ofEach + Math.min(product, maxProduct);
      const isTooMuch = left < 0 || product > maxProduct;
      const entry = isTooMuch ? undefined : findCommon(first.now.descriptor, second.now.descriptor);
      if (isTooMuch || entry !== undefined) yield { above, entry, was: second.was, now: first.now };
    }
  }

  yield* visit(before, after, []);
}

interface Ordered {
  readonly was: LocatedRule;
  readonly now: LocatedRule;
  /** Its previous index. */
  readonly index: number;
}

/** Each pair whose second rule used to be in front of the first. In steps. */
function* listingOvertaken(
  ordered: readonly Ordered[],
): Generator<readonly [Ordered, Ordered] | undefined, void> {
  /** The rules behind the current one, those of the lowest previous index last: in an unchanged order each is added there. */
  const behind: Ordered[] = [];
  for (const first of ordered.toReversed()) {
    yield undefined;
    let at = behind.length;
    for (; at > 0; at--) {
      const second = behind[at - 1] as Ordered;
      if (second.index > first.index) break;
      yield [first, second];
    }
    behind.splice(at, 0, first);
  }
}

/** The text that both match; undefined if no text does. */
function findCommon(
  one: LocatedRule['descriptor'],
  other: LocatedRule['descriptor'],
): Entry | undefined {
  if (one.key === other.key && !one.key.includes('*')) {
    const value = findText(one.value, other.value);
    return value === undefined ? undefined : { key: one.key, value };
  }
  const [first, second] = [one, other].map(({ key, value }) => toCompositeKey(key, value));
  const found = findText(first ?? '', second ?? '');
  // A star may match the separator between a key and its value.
  const text = found?.includes('_') ? found : found?.replace('*', '_*');
  const at = text?.indexOf('_') ?? -1;
  return at === -1
    ? undefined
    : { key: text?.slice(0, at) ?? '', value: text?.slice(at + 1) ?? '' };
}

/** A text that both match, with a star where both have one. */
function findText(one: string, other: string): string | undefined {
  const width = other.length + 1;
  /** Whether the remainders from there on have a common text. */
  const meets = new Uint8Array((one.length + 1) * width);
  const isMet = (at: number, to: number) => meets[at * width + to] === 1;
  for (let at = one.length; at >= 0; at--) {
    for (let to = other.length; to >= 0; to--) {
      const [a, b] = [one[at], other[to]];
      const isEnd = a === undefined && b === undefined;
      const isNext =
        a === '*' || b === '*'
          ? (a !== undefined && isMet(at + 1, to)) || (b !== undefined && isMet(at, to + 1))
          : a !== undefined && a === b && isMet(at + 1, to + 1);
      if (isEnd || isNext) meets[at * width + to] = 1;
    }
  }
  if (!isMet(0, 0)) return undefined;
  let text = '';
  for (let at = 0, to = 0; at < one.length || to < other.length; ) {
    const [a, b] = [one[at], other[to]];
    if (a !== '*' && b !== '*') {
      text += a;
      at++;
      to++;
      continue;
    }
    if (a === '*' && b === '*' && !text.endsWith('*')) text += '*';
    // The star extends as far as possible over the other's letters.
    if (a === '*' && b !== undefined && isMet(at, to + 1)) {
      if (b !== '*') text += b;
      to++;
    } else if (b === '*' && a !== undefined && isMet(at + 1, to)) {
      if (a !== '*') text += a;
      at++;
    } else if (a === '*') at++;
    else to++;
  }
  return text;
}
