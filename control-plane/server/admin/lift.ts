// Lifts the limit of a counter for a time: computes what to write into the files of its domain. A lift is an unlimited
// rule with `until` for exactly the descriptor's values. If a wider rule has rules below it, the lift has a copy of
// them, since a lookup never backtracks (behaviour: lifts). Pure.
import { toCountText } from '../../../shared/count-text.ts';
import { HttpError } from '../../../shared/router/index.ts';
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

/** The changed files of the domain after the lifts. Also removes rules that have ended. Throws an HttpError: 404 if no
 * rule matches or nothing is lifted, 409 if a lift cannot be written. */
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
  const { chosen, lift, at, chain } = target;
  const rule =
    untilMs === undefined
      ? withoutLift(chosen?.descriptor, lift?.descriptor, asked, at)
      : withLift(chosen?.descriptor, lift?.descriptor, { ...asked, untilMs }, at);
  if (rule !== undefined && countRules(rule) > mostCopied) {
    const detail = `${toName(asked)} cannot be lifted by itself: the rule at ${positionOf(chosen)} has more than ${mostCopied} rules below it, and a lift needs a copy of them`;
    throw new HttpError(409, { detail });
  }
  const document = (lift ?? chosen)?.document;
  const file = files.find(({ path }) => path === document?.file);
  if (document === undefined || file === undefined) throw new Error('a rule is of no file');
  const wanted: Wanted = { lift: lift?.descriptor, rule, chain, nowMs };
  const add = rule && { rule: toFlowText(toRuleObject(rule)), comment: asked.comment };
  const siblings = target.level.filter((each) => each.document === document);
  const first = siblings[0]?.descriptor;
  // Rules that have ended are removed too, unless that is impossible.
  for (const ended of [listEnded(document.descriptors, nowMs), []]) {
    const remove = [...ended, ...(lift ? [lift.descriptor] : [])];
    const text = changeText(file.text, { remove, add, first });
    if (text !== undefined && declares(parseText(text, file.path), document, wanted, ended)) {
      return [{ ...file, text }];
    }
  }
  const shown = rule === undefined ? 'remove the rule' : `write it yourself: - ${add?.rule}`;
  const detail = `${file.path} is written in a way that a lift of ${toName(asked)} in domain ${domain} cannot be put into: ${toExcerpt(shown, 500)}`;
  throw new HttpError(409, { detail });
}

function parse({ path, text }: StoredFile, parseText: Parse): RuleDocument {
  const { document, problems } = parseText(text, path);
  if (document !== undefined) return document;
  const reason = problems.find(isError)?.message ?? '';
  throw new HttpError(409, { detail: `${path} has errors (${reason}): repair it first` });
}

/** A pattern, or a rule for all values, limits other values too. */
function refuseOpenEntries(entries: readonly Entry[]): void {
  for (const { key, value } of entries) {
    if (value !== '' && !`${key}${value}`.includes('*')) continue;
    const reason =
      value === '' ? `the entry ${key} has no value` : `${toExcerpt(`${key}=${value}`)} has a *`;
    const detail = `only the counter of exact values can be lifted: ${reason}`;
    throw new HttpError(400, { detail });
  }
}

interface Target {
  /** The list that the lift is inserted into. */
  readonly level: readonly LocatedRule[];
  /** Index of the entry that the list matches. */
  readonly at: number;
  /** Names of the rules above it. */
  readonly chain: readonly string[];
  /** The rule that applies when rules with an end are ignored. */
  readonly chosen: LocatedRule | undefined;
  /** The rule with an end, not yet ended, for exactly this value. */
  readonly lift: LocatedRule | undefined;
}

/** Descends to the first entry for which no rule without an end has exactly this value. */
function findTarget(level: readonly LocatedRule[], asked: LiftAsked): Target {
  const chain: string[] = [];
  for (let at = 0, current = level; ; at++) {
    const { key, value } = asked.entries[at] as Entry;
    const composite = toCompositeKey(key, value);
    const lift = current.find((rule) => isEndingAs(rule.descriptor, composite, asked.nowMs));
    const lasting = current.filter(({ descriptor }) => descriptor.untilMs === undefined);
    const chosen = inOrder(lasting, key, value)[0]?.rule;
    const isExact = chosen?.composite === composite && lift === undefined;
    if (!isExact || at === asked.entries.length - 1) {
      return { level: current, at, chain, chosen, lift };
    }
    chain.push(composite);
    current = chosen.children;
  }
}

function isEndingAs(rule: RuleDescriptor, composite: string, nowMs: number): boolean {
  const { key, value, untilMs } = rule;
  return untilMs !== undefined && untilMs > nowMs && toCompositeKey(key, value) === composite;
}

type Given = RuleDescriptor | undefined;
type LiftUntil = LiftAsked & { readonly untilMs: number };

/** The rule, in place of `lift` or beside `chosen`, that contains the lift. */
function withLift(chosen: Given, lift: Given, asked: LiftUntil, at: number): RuleDescriptor {
  const { entries, untilMs } = asked;
  const { key, value } = entries[at] as Entry;
  const base = lift ?? chosen;
  if (base === undefined) throw refuseWithoutLimit(asked);
  if (lift !== undefined && !isCopy(lift, chosen) && (at < entries.length - 1 || !isLifted(lift))) {
    refuseOtherEnd(lift, asked, at);
  }
  if (base.shareThreshold && base.descriptors.length > 0) {
    const detail = `${toName(asked)} cannot be lifted by itself: the values of ${toCompositeKey(base.key, base.value)} count together, and so do the rules below it`;
    throw new HttpError(409, { detail });
  }
  if (at < entries.length - 1) {
    const end = Math.max(untilMs, lift?.untilMs ?? 0);
    const descriptors = insertBelow(base.descriptors, asked, at + 1);
    return { ...base, key, value, shareThreshold: false, untilMs: end, descriptors };
  }
  const limit = chosen?.rateLimit ?? base.rateLimit;
  if (limit === undefined) throw refuseWithoutLimit(asked);
  if (chosen?.rateLimit?.unlimited) {
    throw new HttpError(409, { detail: `${toName(asked)} has no limit to lift: it is unlimited` });
  }
  const later = latestEnd(base.descriptors);
  if (later > untilMs) {
    const detail = `below ${toName(asked)} a lift lasts until ${toTimeText(later)}: end that one first, or lift for longer`;
    throw new HttpError(409, { detail });
  }
  return {
    ...base,
    ...noFlags,
    key,
    value,
    untilMs,
    rateLimit: toUnlimited(limit),
    furtherLimits: [],
  };
}

/** The rules of a copy, with the lift among them. */
function insertBelow(
  rules: readonly RuleDescriptor[],
  asked: LiftUntil,
  at: number,
): RuleDescriptor[] {
  const { chosen, lift, others } = inspect(rules, asked, at);
  const isExact = chosen !== undefined && isNamed(chosen, asked.entries[at] as Entry);
  if (isExact && lift === undefined && at < asked.entries.length - 1) {
    const descriptors = insertBelow(chosen.descriptors, asked, at + 1);
    return others.map((rule) => (rule === chosen ? { ...chosen, descriptors } : rule));
  }
  return [...others, withLift(chosen, lift, asked, at)];
}

/** The remainder of `lift` without the given lift; undefined if nothing remains. */
function withoutLift(chosen: Given, lift: Given, asked: LiftAsked, at: number): Given {
  if (at === asked.entries.length - 1) {
    if (lift === undefined || !isLifted(lift)) throw refuseUnlifted(asked);
    if (chosen === undefined || latestEnd(lift.descriptors) === 0) return undefined;
    const { key, value, untilMs, descriptors } = lift;
    return { ...chosen, key, value, untilMs, descriptors };
  }
  if (lift === undefined) throw refuseUnlifted(asked);
  const descriptors = removeFromBelow(lift.descriptors, asked, at + 1);
  return isCopy(lift, chosen) && latestEnd(descriptors) === 0
    ? undefined
    : { ...lift, descriptors };
}

function removeFromBelow(
  rules: readonly RuleDescriptor[],
  asked: LiftAsked,
  at: number,
): RuleDescriptor[] {
  const { chosen, lift, others } = inspect(rules, asked, at);
  if (lift === undefined && chosen !== undefined && at < asked.entries.length - 1) {
    const descriptors = removeFromBelow(chosen.descriptors, asked, at + 1);
    return others.map((rule) => (rule === chosen ? { ...chosen, descriptors } : rule));
  }
  const left = withoutLift(chosen, lift, asked, at);
  return left === undefined ? others : [...others, left];
}

/** `others`: without ended rules, and without `lift`. */
function inspect(rules: readonly RuleDescriptor[], { entries, nowMs }: LiftAsked, at: number) {
  const { key, value } = entries[at] as Entry;
  const composite = toCompositeKey(key, value);
  const lift = rules.find((rule) => isEndingAs(rule, composite, nowMs));
  const lasting = rules
    .filter(({ untilMs }) => untilMs === undefined)
    .map((rule) => ({ rule, composite: toCompositeKey(rule.key, rule.value) }));
  const chosen = inOrder(lasting, key, value)[0]?.rule.rule;
  const others = rules.filter(
    (rule) => rule !== lift && (rule.untilMs === undefined || rule.untilMs > nowMs),
  );
  return { chosen, lift, others };
}

function isNamed(rule: RuleDescriptor, { key, value }: Entry): boolean {
  return toCompositeKey(rule.key, rule.value) === toCompositeKey(key, value);
}

function isLifted({ rateLimit }: RuleDescriptor): boolean {
  return rateLimit?.unlimited === true;
}

/** Whether the rule exists only for the lifts below it: it has the limit of `chosen`. */
function isCopy(lift: RuleDescriptor, chosen: Given): boolean {
  const own = (rule: RuleDescriptor) =>
    toFlowText(
      toRuleObject({ ...rule, ...{ key: '', value: '', untilMs: undefined, descriptors: [] } }),
    );
  return chosen !== undefined && own(lift) === own({ ...chosen, shareThreshold: false });
}

/** Refused, since it is unknown which of the two ends is meant. */
function refuseOtherEnd(lift: RuleDescriptor, asked: LiftUntil, at: number): void {
  if (at < asked.entries.length - 1 && asked.untilMs <= (lift.untilMs ?? 0)) return;
  const what = isLifted(lift) ? 'is lifted' : 'has a rule of its own';
  const detail = `${toCompositeKey(lift.key, lift.value)} ${what} until ${toTimeText(lift.untilMs ?? 0)}: end that first, or change it in the file`;
  throw new HttpError(409, { detail });
}

/** The lift still replaces the rules that the limit replaces. */
function toUnlimited({ name, replaces }: RateLimitBlock): RateLimitBlock {
  return {
    ...plainShape,
    unit: undefined,
    requestsPerUnit: 0,
    unlimited: true,
    name,
    replaces,
  };
}

/** 0 if none ends. */
function latestEnd(rules: readonly RuleDescriptor[]): number {
  return rules.reduce(
    (latest, { untilMs = 0, descriptors }) => Math.max(latest, untilMs, latestEnd(descriptors)),
    0,
  );
}

function countRules({ descriptors }: RuleDescriptor): number {
  return descriptors.reduce((sum, each) => sum + countRules(each), 1);
}

/** The topmost rules that have ended. */
function listEnded(rules: readonly RuleDescriptor[], nowMs: number): RuleDescriptor[] {
  return rules.flatMap((rule) =>
    rule.untilMs !== undefined && rule.untilMs <= nowMs ? rule : listEnded(rule.descriptors, nowMs),
  );
}

interface Wanted {
  readonly lift: Given;
  readonly rule: Given;
  readonly chain: readonly string[];
  readonly nowMs: number;
}

/** Whether the new document has the wanted rules, and is otherwise unchanged. */
function declares(
  { document: after }: ParsedDocument,
  before: RuleDocument,
  { lift, rule, chain }: Wanted,
  removed: readonly RuleDescriptor[],
): boolean {
  if (after === undefined || after.domain !== before.domain) return false;
  const gone = new Set([...removed, ...(lift ? [lift] : [])]);
  const remaining = listEnding(before.descriptors, [], gone);
  const wanted = rule === undefined ? remaining : [...remaining, describe(rule, chain)];
  const found = listEnding(after.descriptors, [], new Set());
  return (
    lastingOf(before) === lastingOf(after) && wanted.sort().join('\n') === found.sort().join('\n')
  );
}

/** The document without any rule that has an end. */
function lastingOf(document: RuleDocument): string {
  const [lasting = document] = documentsAt([document], Number.POSITIVE_INFINITY);
  return toFlowText(lasting.descriptors.map(toRuleObject));
}

/** The topmost rules with an end, with the names of those above them. */
function listEnding(
  rules: readonly RuleDescriptor[],
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

function refuseUnlifted(asked: LiftAsked): HttpError {
  return new HttpError(404, { detail: `${toName(asked)} of domain ${asked.domain} is not lifted` });
}

function refuseWithoutLimit(asked: LiftAsked): HttpError {
  const detail = `no limit applies to ${toName(asked)} of domain ${asked.domain}: there is nothing to lift`;
  return new HttpError(404, { detail });
}

/** Refuses, and names the rule that was most likely meant. Rules with an end do not count: a lift is an exception to a
 * permanent rule. */
function refuseUnmatched(documents: readonly RuleDocument[], { domain, entries }: LiftAsked): void {
  const lasting = locateRules(documentsAt(documents, Number.POSITIVE_INFINITY)).get(domain) ?? [];
  const why = explainNoMatch(domain, lasting, entries);
  if (why === undefined) return;
  const nearest = why.nearest ? `; the nearest rule is at ${toPositionText(why.nearest.rule)}` : '';
  const hint = why.hint === undefined ? '' : `; ${why.hint}`;
  const detail = `no rule matches ${toName({ entries })} of domain ${domain}: ${why.reason}${hint}${nearest}`;
  throw new HttpError(404, { detail });
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
