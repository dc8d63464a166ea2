// Finds rules of one domain whose hits can be counted under the same key in the store: keys and values are joined by
// `_` without escaping (counter-key.ts), so [user=ada_path_/login] and [user=ada][path=/login] collide where rules
// match both. shared-counters.ts finds collisions between two domains.
import {
  createRuleAdvice,
  type LocatedRule,
  toPositionText,
} from '../../shared/rules/lookup/located-rule.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import {
  agree,
  canBeEqual,
  maxSteps,
  maxSymbols,
  type Symbols,
  toSymbols,
} from '../../shared/rules/shared-counters.ts';

interface CountedRule {
  readonly rule: LocatedRule;
  /** The keys of all levels: requests with the same keys are matched in the same way, and match one rule. */
  readonly keys: string;
  /** Counters of different windows have different keys. */
  readonly windows: ReadonlySet<string>;
  /** The beginning of the counter's key, up to the first value that can be any text. */
  readonly lead: string;
  readonly symbols: Symbols;
}

/** At most one note per domain, at the first rule that collides with another. */
export function findMeetingCounters(domain: string, rules: readonly LocatedRule[]): Problem[] {
  const counted = [...listCounted(rules, [...`${domain}_`], '')];
  const ordered = counted.toSorted((a, b) => (a.lead < b.lead ? -1 : a.lead > b.lead ? 1 : 0));
  /** Rules whose lead is a prefix of the next rule's. */
  let open: CountedRule[] = [];
  let steps = 0;
  for (const one of ordered) {
    open = open.filter(({ lead }) => one.lead.startsWith(lead));
    for (const other of open) {
      if (++steps > maxSteps) return [];
      if (one.keys === other.keys || one.windows.isDisjointFrom(other.windows)) continue;
      steps += one.symbols.length * other.symbols.length;
      if (canBeEqual(one.symbols, other.symbols)) return [createNote(other, one)];
    }
    open.push(one);
  }
  return [];
}

const mostNamed = 3;

/** Rules per step. */
const rulesAtOnce = 50;

/** Rules under whose counter key other requests can be counted, at most three. `found` itself is included if another
 * value gives the same key. In steps. */
export function* findingSharers(
  { domain, rules }: { readonly domain: string; readonly rules: readonly LocatedRule[] },
  entries: readonly Entry[],
  found: LocatedRule,
): Generator<void, LocatedRule[]> {
  const key = `${domain}_${entries.map((entry) => `${entry.key}_${entry.value}_`).join('')}`;
  const sharers: LocatedRule[] = [];
  if (key.length > maxSymbols) return sharers;
  const windows = windowsOf(found);
  const keys = toKeys(entries.map((entry) => entry.key));
  let [steps, seen] = [0, 0];
  for (const counted of listCounted(rules, [...`${domain}_`], '')) {
    if (++seen % rulesAtOnce === 0) yield;
    if (!agree(key, counted.lead) || counted.windows.isDisjointFrom(windows)) continue;
    steps += key.length * counted.symbols.length;
    if (steps > maxSteps || sharers.length === mostNamed) break;
    const ways = countWays([...key], counted.symbols);
    // With the same keys, one of the ways is this request itself, which matches no other rule.
    if (ways > (counted.keys === keys ? 1 : 0)) sharers.push(counted.rule);
  }
  return sharers;
}

function* listCounted(
  rules: readonly LocatedRule[],
  before: Symbols,
  keysBefore: string,
): Generator<CountedRule, void> {
  for (const rule of rules) {
    const symbols = toSymbols(before, rule.descriptor);
    if (symbols === undefined) continue;
    const keys = toKeys([rule.descriptor.key], keysBefore);
    const windows = windowsOf(rule);
    if (windows.size > 0) {
      const any = symbols.indexOf(undefined);
      const lead = symbols.slice(0, any === -1 ? undefined : any).join('');
      yield { rule, keys, windows, lead, symbols };
    }
    if (rule.children.length > 0) yield* listCounted(rule.children, symbols, keys);
  }
}

function toKeys(keys: readonly string[], before = ''): string {
  return keys.reduce((all, key) => `${all}\0${key}`, before);
}

function windowsOf({ descriptor: { rateLimit, furtherLimits } }: LocatedRule): ReadonlySet<string> {
  const limits =
    rateLimit === undefined || rateLimit.unlimited ? [] : [rateLimit, ...furtherLimits];
  return new Set(
    limits.map(({ unit, unitMultiplier, algorithm }) => `${unit} ${unitMultiplier} ${algorithm}`),
  );
}

/** In how many ways the symbols can stand for the text; more than one is two. */
function countWays(text: readonly string[], symbols: Symbols): number {
  let ways = new Array<number>(text.length + 1).fill(0);
  ways[0] = 1;
  for (const symbol of symbols) {
    const next = new Array<number>(text.length + 1).fill(0);
    let before = 0;
    for (let at = 0; at <= text.length; at++) {
      if (symbol === undefined) {
        before = Math.min(2, before + (ways[at] ?? 0));
        next[at] = before;
      } else if (at > 0 && text[at - 1] === symbol) next[at] = ways[at - 1] ?? 0;
    }
    ways = next;
  }
  return ways[text.length] ?? 0;
}

function createNote(one: CountedRule, other: CountedRule): Problem {
  const message =
    "values with a '_' can make this rule and another one of the domain count under one key, and use up each other's limit";
  const hint = `the other one is at ${toPositionText(one.rule)}; where callers choose the values, give the two different windows, or send no value that has a '_' and a key of these rules`;
  return createRuleAdvice('meeting-counters', other.rule, undefined, message, hint);
}
