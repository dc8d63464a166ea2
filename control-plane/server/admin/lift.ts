// Lifts the limit of a counter for a time: computes what to write into the files of its domain (behaviour: lifts).
// Pure. A lift is an unlimited rule with an end (`until`) for exactly the descriptor's values. What is written depends
// on the rule for each entry of the descriptor. Three lifts until six, one after another:
//
//   the rules        plan=pro, path=/x     then user=ada, path=/x      then user=ada
//   plan=pro: 50     plan=pro: 50          plan=pro: ...               plan=pro: ...
//     path: 5          path: 5             user: 10                    user: 10
//   user: 10           path=/x: lift         path: 3                     path: 3
//     path: 3        user: 10              user=ada: 10, until six     user=ada: lift
//                      path: 3               path: 3                     path: 3
//                                            path=/x: lift               path=/x: lift
//
// - An exact rule (plan=pro) remains as it is: the lift is inserted below it.
// - A lift below a wider rule (user) would be for its other values, too. So this value gets a copy of it with all rules
//   below it, since a lookup that enters the copy never backtracks. The copy ends no earlier than the lifts below it.
// - A copy or a lift that is there is replaced: by one with the new lift below it, or by the lift (user=ada).
// A lift that is ended leaves a copy while other lifts are below it. A copy is removed with the last one.
import { toCountText } from '../../../shared/count-text.ts';
import { type ParsedDocument, parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { plainShape } from '../../../shared/rules/limit-shape.ts';
import { inOrder } from '../../../shared/rules/lookup/level.ts';
import {
  type LocatedRule,
  locateRules,
  toPositionText,
} from '../../../shared/rules/lookup/located-rule.ts';
import { explainNoMatch } from '../../../shared/rules/lookup/nearest-rule.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import type { Entry, JsonValue } from '../../../shared/rules/rule.ts';
import {
  type RateLimitBlock,
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../../shared/rules/rule-document.ts';
import { documentsAt, toTimeText } from '../../../shared/rules/rule-end.ts';
import { noFlags } from '../../../shared/rules/rule-keys.ts';
import { toFlowText, toRuleObject } from '../../../shared/rules/wire/rule-object.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { Parse } from '../snapshot/build.ts';
import type { StoredFile } from '../store/revision.ts';
import { changeText } from './lift-text.ts';

interface LiftAsked {
  readonly domain: string;
  readonly entries: readonly Entry[];
  /** Wall time in milliseconds; undefined: the lift ends at once. */
  readonly untilMs: number | undefined;
  /** Names the user who lifts the limit and the reason, on one line. */
  readonly comment: string;
  /** Wall time in milliseconds. */
  readonly nowMs: number;
}

/** Lifts of several descriptors, one after another. */
export interface LiftsAsked extends Omit<LiftAsked, 'entries'> {
  readonly descriptors: readonly (readonly Entry[])[];
}

/** The most rules that a lift may copy: it is one line of the file. */
export const mostCopied = 200;

export class LiftRefused extends Error {
  /** As of HTTP: 404 if no rule matches or nothing is lifted, 409 if a lift cannot be written. */
  readonly status: 400 | 404 | 409;

  constructor(status: 400 | 404 | 409, detail: string) {
    super(detail);
    this.status = status;
  }
}

/** The changed files of the domain after the lifts. Also removes rules that have ended. Throws LiftRefused. */
export function planLifts(
  files: readonly StoredFile[],
  { descriptors, ...asked }: LiftsAsked,
): StoredFile[] {
  // When one lift begins, the file content after the previous one is already parsed.
  const parse = createRememberingParser();
  let changed = files;
  for (const entries of descriptors) {
    const planned = planLift(changed, { ...asked, entries }, parse());
    changed = changed.map((file) => planned.find(({ path }) => path === file.path) ?? file);
  }
  return changed.filter((file, index) => file !== files[index]);
}

/** Parses each text only once: each call is for the files of the next lift. Texts that the previous one did not have are
 * forgotten. */
export function createRememberingParser(): () => Parse {
  let before = new Map<string, { readonly text: string; readonly parsed: ParsedDocument }>();
  return () => {
    const known = before;
    before = new Map();
    const now = before;
    return (text, path) => {
      const found = known.get(path);
      const same = found?.text === text ? found : { text, parsed: parseRuleDocument(text, path) };
      now.set(path, same);
      return same.parsed;
    };
  };
}

function planLift(files: readonly StoredFile[], asked: LiftAsked, parseText: Parse): StoredFile[] {
  const { domain, entries, untilMs, nowMs } = asked;
  const documents = files.map((file) => parse(file, parseText));
  const [level = []] = [...locateRules(documents).values()];
  refuseOpenEntries(entries);
  if (untilMs !== undefined) refuseUnmatched(documents, asked);
  const target = findTarget(level, asked);
  const { lasting, ending, at, chain } = target;
  const rule =
    untilMs === undefined
      ? removeAt(lasting?.descriptor, ending?.descriptor, asked, at)
      : insertAt(lasting?.descriptor, ending?.descriptor, { ...asked, untilMs }, at);
  if (rule !== undefined && countRules(rule) > mostCopied) {
    const detail = `${toName(asked)} cannot be lifted by itself: the rule at ${positionOf(lasting)} has more than ${mostCopied} rules below it, and a lift needs a copy of them`;
    throw new LiftRefused(409, detail);
  }
  const document = (ending ?? lasting)?.document;
  const file = files.find(({ path }) => path === document?.file);
  if (document === undefined || file === undefined) throw new Error('a rule is of no file');
  const wanted: Wanted = { ending: ending?.descriptor, rule, chain };
  const add = rule && { rule: toFlowText(toRuleObject(rule)), comment: asked.comment };
  const siblings = target.level.filter((each) => each.document === document);
  const first = siblings[0]?.descriptor;
  // Rules that have ended are removed too, unless that is impossible.
  for (const ended of [listEnded(document.descriptors, nowMs), []]) {
    const remove = [...ended, ...(ending ? [ending.descriptor] : [])];
    const text = changeText(file.text, { remove, add, first });
    if (text !== undefined && isOnlyChange(parseText(text, file.path), document, wanted, ended)) {
      return [{ ...file, text }];
    }
  }
  const shown = rule === undefined ? 'remove the rule' : `write it yourself: - ${add?.rule}`;
  const detail = `${file.path} is written in a way that a lift of ${toName(asked)} in domain ${domain} cannot be put into: ${toExcerpt(shown, 500)}`;
  throw new LiftRefused(409, detail);
}

function parse({ path, text }: StoredFile, parseText: Parse): RuleDocument {
  const { document, problems } = parseText(text, path);
  if (document !== undefined) return document;
  const reason = problems.find(isError)?.message ?? '';
  throw new LiftRefused(409, `${path} has errors (${reason}): repair it first`);
}

/** A pattern, or a rule for all values, limits other values too. */
function refuseOpenEntries(entries: readonly Entry[]): void {
  for (const { key, value } of entries) {
    if (value !== '' && !`${key}${value}`.includes('*')) continue;
    const reason =
      value === '' ? `the entry ${key} has no value` : `${toExcerpt(`${key}=${value}`)} has a *`;
    const detail = `only the counter of exact values can be lifted: ${reason}`;
    throw new LiftRefused(400, detail);
  }
}

interface Target {
  /** The list that the lift is inserted into. */
  readonly level: readonly LocatedRule[];
  /** Index of the entry that the list matches. */
  readonly at: number;
  /** Names of the rules above it. */
  readonly chain: readonly string[];
  /** The rule without an end that applies. */
  readonly lasting: LocatedRule | undefined;
  /** The rule with an end for exactly this value, if it has not ended: a lift, a copy, or one written by hand. */
  readonly ending: LocatedRule | undefined;
}

/** Descends through exact rules, to the first entry with a wider rule or one with an end, or to the last entry. */
function findTarget(level: readonly LocatedRule[], asked: LiftAsked): Target {
  const chain: string[] = [];
  for (let at = 0, current = level; ; at++) {
    const { key, value } = asked.entries[at] as Entry;
    const composite = toCompositeKey(key, value);
    const ending = current.find((rule) => isEndingAs(rule.descriptor, composite, asked.nowMs));
    const permanent = current.filter(({ descriptor }) => descriptor.untilMs === undefined);
    const lasting = inOrder(permanent, key, value)[0]?.rule;
    const isExact = lasting?.composite === composite && ending === undefined;
    if (!isExact || at === asked.entries.length - 1) {
      return { level: current, at, chain, lasting, ending };
    }
    chain.push(composite);
    current = lasting.children;
  }
}

function isEndingAs(rule: RuleDescriptor, composite: string, nowMs: number): boolean {
  const { key, value, untilMs } = rule;
  return untilMs !== undefined && untilMs > nowMs && toCompositeKey(key, value) === composite;
}

// Below, `lasting` and `ending` are those of a Target, for the entry at index `at`.
type Given = RuleDescriptor | undefined;
type Rules = readonly RuleDescriptor[];
type LiftUntil = LiftAsked & { readonly untilMs: number };

/** The rule that replaces `ending`: for the last entry the lift, else a copy with the lift below it. */
function insertAt(lasting: Given, ending: Given, asked: LiftUntil, at: number): RuleDescriptor {
  const { entries, untilMs } = asked;
  const { key, value } = entries[at] as Entry;
  const isLast = at === entries.length - 1;
  const base = ending ?? lasting;
  if (base === undefined) throw refuseWithoutLimit(asked);
  if (ending !== undefined && !isCopyOf(ending, lasting)) {
    // The last entry's lift is replaced; a rule above it stays, if the lift below it ends no later.
    const isCompatible = isLast ? isLifted(ending) : untilMs <= (ending.untilMs ?? 0);
    if (!isCompatible) throw refuseOtherEnd(ending);
  }
  if (base.shareThreshold && base.descriptors.length > 0) {
    const detail = `${toName(asked)} cannot be lifted by itself: the values of ${toCompositeKey(base.key, base.value)} count together, and so do the rules below it`;
    throw new LiftRefused(409, detail);
  }
  if (!isLast) {
    const end = Math.max(untilMs, ending?.untilMs ?? 0);
    const descriptors = insertBelow(base.descriptors, asked, at + 1);
    return { ...base, key, value, shareThreshold: false, untilMs: end, descriptors };
  }
  const limit = lasting?.rateLimit ?? base.rateLimit;
  if (limit === undefined) throw refuseWithoutLimit(asked);
  if (lasting?.rateLimit?.unlimited) {
    throw new LiftRefused(409, `${toName(asked)} has no limit to lift: it is unlimited`);
  }
  const later = latestEnd(base.descriptors);
  if (later > untilMs) {
    const detail = `below ${toName(asked)} a lift lasts until ${toTimeText(later)}: end that one first, or lift for longer`;
    throw new LiftRefused(409, detail);
  }
  const unlimited = { ...noFlags, rateLimit: toUnlimited(limit), furtherLimits: [] };
  return { ...base, ...unlimited, key, value, untilMs };
}

/** The rules of a copy, with the lift among them. */
function insertBelow(rules: Rules, asked: LiftUntil, at: number): Rules {
  const { lasting, ending, others } = findRules(rules, asked, at);
  const isExact = lasting !== undefined && isNamed(lasting, asked.entries[at] as Entry);
  if (isExact && ending === undefined && at < asked.entries.length - 1) {
    const descriptors = insertBelow(lasting.descriptors, asked, at + 1);
    return others.map((rule) => (rule === lasting ? { ...lasting, descriptors } : rule));
  }
  return [...others, insertAt(lasting, ending, asked, at)];
}

/** The reverse of `insertAt`: what remains of `ending` without the lift, if anything. */
function removeAt(lasting: Given, ending: Given, asked: LiftAsked, at: number): Given {
  if (at === asked.entries.length - 1) {
    if (ending === undefined || !isLifted(ending)) throw refuseUnlifted(asked);
    if (lasting === undefined || latestEnd(ending.descriptors) === 0) return undefined;
    const { key, value, untilMs, descriptors } = ending;
    return { ...lasting, key, value, untilMs, descriptors };
  }
  if (ending === undefined) throw refuseUnlifted(asked);
  const descriptors = removeFromBelow(ending.descriptors, asked, at + 1);
  const isSpent = isCopyOf(ending, lasting) && latestEnd(descriptors) === 0;
  return isSpent ? undefined : { ...ending, descriptors };
}

/** The rules of a copy, without the lift. */
function removeFromBelow(rules: Rules, asked: LiftAsked, at: number): Rules {
  const { lasting, ending, others } = findRules(rules, asked, at);
  if (ending === undefined && lasting !== undefined && at < asked.entries.length - 1) {
    const descriptors = removeFromBelow(lasting.descriptors, asked, at + 1);
    return others.map((rule) => (rule === lasting ? { ...lasting, descriptors } : rule));
  }
  const left = removeAt(lasting, ending, asked, at);
  return left === undefined ? others : [...others, left];
}

/** `others`: without ended rules, and without `ending`. */
function findRules(rules: Rules, { entries, nowMs }: LiftAsked, at: number) {
  const { key, value } = entries[at] as Entry;
  const composite = toCompositeKey(key, value);
  const ending = rules.find((rule) => isEndingAs(rule, composite, nowMs));
  const permanent = rules
    .filter(({ untilMs }) => untilMs === undefined)
    .map((rule) => ({ rule, composite: toCompositeKey(rule.key, rule.value) }));
  const lasting = inOrder(permanent, key, value)[0]?.rule.rule;
  const others = rules.filter(
    (rule) => rule !== ending && (rule.untilMs === undefined || rule.untilMs > nowMs),
  );
  return { lasting, ending, others };
}

function isNamed(rule: RuleDescriptor, { key, value }: Entry): boolean {
  return toCompositeKey(rule.key, rule.value) === toCompositeKey(key, value);
}

function isLifted({ rateLimit }: RuleDescriptor): boolean {
  return rateLimit?.unlimited === true;
}

/** Whether the rule exists only for the lifts below it: it has the limit of `lasting`. */
function isCopyOf(ending: RuleDescriptor, lasting: Given): boolean {
  const own = (rule: RuleDescriptor) =>
    toFlowText(
      toRuleObject({ ...rule, ...{ key: '', value: '', untilMs: undefined, descriptors: [] } }),
    );
  return lasting !== undefined && own(ending) === own({ ...lasting, shareThreshold: false });
}

/** Refused, since it is unknown which of the two ends is meant. */
function refuseOtherEnd(ending: RuleDescriptor): LiftRefused {
  const what = isLifted(ending) ? 'is lifted' : 'has a rule of its own';
  const detail = `${toCompositeKey(ending.key, ending.value)} ${what} until ${toTimeText(ending.untilMs ?? 0)}: end that first, or change it in the file`;
  return new LiftRefused(409, detail);
}

/** The lift still replaces the rules that the limit replaces. */
function toUnlimited({ name, replaces }: RateLimitBlock): RateLimitBlock {
  const shape = { ...plainShape, unit: undefined, requestsPerUnit: 0 };
  return { ...shape, unlimited: true, name, replaces };
}

/** 0 if none ends. */
function latestEnd(rules: Rules): number {
  return rules.reduce(
    (latest, { untilMs = 0, descriptors }) => Math.max(latest, untilMs, latestEnd(descriptors)),
    0,
  );
}

function countRules({ descriptors }: RuleDescriptor): number {
  return descriptors.reduce((sum, each) => sum + countRules(each), 1);
}

/** The topmost rules that have ended. */
function listEnded(rules: Rules, nowMs: number): RuleDescriptor[] {
  return rules.flatMap((rule) =>
    rule.untilMs !== undefined && rule.untilMs <= nowMs ? rule : listEnded(rule.descriptors, nowMs),
  );
}

interface Wanted {
  /** The rule that `rule` replaces. */
  readonly ending: Given;
  readonly rule: Given;
  readonly chain: readonly string[];
}

/** Whether the new document has the wanted rules, and is otherwise unchanged: `changeText` edits by
 * positions, and does not know what else the notation of the file (anchors, brackets) makes of that. */
function isOnlyChange(
  { document: after }: ParsedDocument,
  before: RuleDocument,
  { ending, rule, chain }: Wanted,
  removed: readonly RuleDescriptor[],
): boolean {
  if (after === undefined || after.domain !== before.domain) return false;
  const gone = new Set([...removed, ...(ending ? [ending] : [])]);
  const remaining = listEnding(before.descriptors, [], gone);
  const wanted = rule === undefined ? remaining : [...remaining, describe(rule, chain)];
  const found = listEnding(after.descriptors, [], new Set());
  return (
    lastingOf(before) === lastingOf(after) && wanted.sort().join('\n') === found.sort().join('\n')
  );
}

/** The document without any rule that has an end. */
function lastingOf(document: RuleDocument): string {
  const [permanent = document] = documentsAt([document], Number.POSITIVE_INFINITY);
  return toFlowText(permanent.descriptors.map(toRuleObject));
}

/** The topmost rules with an end, with the names of those above them. */
function listEnding(
  rules: Rules,
  chain: readonly string[],
  without: ReadonlySet<RuleDescriptor>,
): string[] {
  return rules.flatMap((rule) => {
    if (without.has(rule)) return [];
    if (rule.untilMs !== undefined) return [describe(rule, chain)];
    const below = [...chain, toCompositeKey(rule.key, rule.value)];
    return listEnding(rule.descriptors, below, without);
  });
}

function describe(rule: RuleDescriptor, chain: readonly string[]): string {
  const written: JsonValue[] = [[...chain], toRuleObject(rule)];
  return toFlowText(written);
}

function toName({ entries }: Pick<LiftAsked, 'entries'>): string {
  return toExcerpt(entries.map(({ key, value }) => `(${key}=${value})`).join(''), 200);
}

function positionOf(rule: LocatedRule | undefined): string {
  return rule === undefined ? 'an unknown place' : toPositionText(rule);
}

function refuseUnlifted(asked: LiftAsked): LiftRefused {
  return new LiftRefused(404, `${toName(asked)} of domain ${asked.domain} is not lifted`);
}

function refuseWithoutLimit(asked: LiftAsked): LiftRefused {
  const detail = `no limit applies to ${toName(asked)} of domain ${asked.domain}: there is nothing to lift`;
  return new LiftRefused(404, detail);
}

/** Refuses, and names the rule that was most likely meant. Rules with an end do not count: a lift is an exception to a
 * permanent rule. */
function refuseUnmatched(documents: readonly RuleDocument[], { domain, entries }: LiftAsked): void {
  const level = locateRules(documentsAt(documents, Number.POSITIVE_INFINITY)).get(domain) ?? [];
  const why = explainNoMatch(domain, level, entries);
  if (why === undefined) return;
  const nearest = why.nearest ? `; the nearest rule is at ${toPositionText(why.nearest.rule)}` : '';
  const hint = why.hint === undefined ? '' : `; ${why.hint}`;
  const detail = `no rule matches ${toName({ entries })} of domain ${domain}: ${why.reason}${hint}${nearest}`;
  throw new LiftRefused(404, detail);
}

/** The name of the first rule, such as `shop.user_ada`, and the number of the others. */
export function toRuleNames(domain: string, all: readonly (readonly Entry[])[]): string {
  const names = all.map((entries) =>
    [domain, ...entries.map(({ key, value }) => toCompositeKey(key, value))].join('.'),
  );
  return names.length <= 3
    ? names.join(', ')
    : `${names.slice(0, 3).join(', ')} and ${toCountText(names.length - 3, 'other')}`;
}
