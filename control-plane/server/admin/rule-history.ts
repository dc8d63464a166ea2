// The history of one rule, like blame for a line: the revisions that changed it, the newest first, each with its value
// before and after. Revisions are read one at a time, and files with unchanged text are not parsed again. The caller
// limits each call: the next one continues where it stopped.
import { isDeepStrictEqual } from 'node:util';
import { Pauses } from '../../../shared/in-slices.ts';
import type { RuleDescriptor } from '../../../shared/rules/rule-document.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { limitModes } from '../../../shared/rules/rule-keys.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { Reading } from './examination.ts';
import { describeLimits } from './rule-rows.ts';

export interface RuleChangeInHistory {
  readonly revision: RevisionInfo;
  /** The revision that was in force before; undefined if none is known, so that this is the oldest known value. */
  readonly before: RevisionInfo | undefined;
  /** The human-readable values; undefined if there was no such rule. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** What changed, such as `5 per minute -> 3 per minute`. */
  readonly texts: readonly string[];
  /** The newest older revision in which the rule was the same as from this revision on. */
  readonly restores: string | undefined;
}

export interface RuleHistory {
  readonly changes: readonly RuleChangeInHistory[];
  /** The index of the revision to continue with; undefined at the end. */
  readonly next: number | undefined;
}

export interface RuleHistorySources {
  /** The newest first. */
  readonly revisions: readonly RevisionInfo[];
  /** Whether the revision at this index was in force: each is compared with the one in force before it. */
  readonly wasInForce: (index: number) => boolean;
  readonly readRevision: (id: string) => Promise<Revision | undefined>;
  readonly readDocument: Reading['readDocument'];
  readonly hasTime: () => boolean;
}

export interface RuleHistoryQuestion {
  /** The name in `GET /rules`. */
  readonly rule: string;
  /** The index of the revision to begin with. */
  readonly start: number;
  /** The most changes. */
  readonly limit: number;
}

const maxTextLength = 300;

/** The rule in one revision: its descriptors, one of which may apply until a certain time and another after it. */
type Known = readonly Value[];

/** A descriptor without its lines and without the rules below it. */
type Value = ReturnType<typeof toValue>;

export async function findRuleHistory(
  { rule, start, limit }: RuleHistoryQuestion,
  { revisions, wasInForce, readRevision, readDocument, hasTime }: RuleHistorySources,
): Promise<RuleHistory> {
  /** The most recently parsed text, by path. */
  const parsed = new Map<string, { readonly text: string; readonly known: Known }>();
  /** The state of each revision by its index; null if the revision cannot be read or has errors. */
  const states = new Map<number, Known | null>();
  const pauses = new Pauses();
  const found: (RuleChangeInHistory & { readonly index: number; readonly now: Known })[] = [];

  async function stateOf(index: number): Promise<Known | null> {
    const known = states.get(index);
    if (known !== undefined) return known;
    const revision = await readRevision(revisions[index]?.id ?? '');
    const state = revision === undefined ? null : await findRule(revision);
    states.set(index, state);
    return state;
  }

  async function findRule({ files }: Revision): Promise<Known | null> {
    const all: Value[] = [];
    for (const { path, text } of files) {
      await pauses.next();
      const before = parsed.get(path);
      const known = before?.text === text ? before.known : await findInFile(path, text);
      if (known === undefined) return null;
      parsed.set(path, { text, known });
      all.push(...known);
    }
    return all;
  }

  /** Undefined if the file has errors. */
  async function findInFile(path: string, text: string): Promise<Known | undefined> {
    if (!mayHaveDomainOf(rule, text)) return [];
    const { document } = await readDocument(text, path, rule);
    return document?.descriptors.map(toValue);
  }

  for (let index = start; index < revisions.length; index++) {
    if (found.length >= limit || (index > start && !hasTime())) {
      return { changes: found.map(toChange), next: index };
    }
    const revision = revisions[index];
    const now = await stateOf(index);
    states.delete(index - 1);
    if (revision === undefined || now === null) continue;
    let older = index + 1;
    while (older < revisions.length && !wasInForce(older)) older++;
    const before = older < revisions.length ? await stateOf(older) : undefined;
    // The contents of lost files are unknown.
    if (before === null) continue;
    const change = compare(before, now);
    if (change === undefined) continue;
    found.push({
      ...{ index, now, revision, before: revisions[older], restores: undefined },
      ...change,
    });
  }
  return { changes: found.map(toChange), next: undefined };

  function toChange({ index: _, now, ...change }: (typeof found)[number], position: number) {
    const isBack = found.slice(position + 1).find((each) => isSame(each.now, now));
    return isBack === undefined || now.length === 0
      ? change
      : { ...change, restores: isBack.revision.id };
  }
}

/** Undefined if nothing changed. `before` undefined: `now` is the oldest known state. */
function compare(before: Known | undefined, now: Known) {
  if (before === undefined) {
    return now.length === 0 ? undefined : { from: undefined, to: describe(now), texts: [] };
  }
  if (isSame(before, now)) return undefined;
  const [from, to] = [describe(before), describe(now)];
  const texts: string[] = [];
  if (from !== to) texts.push(`${from ?? 'no rule'} -> ${to ?? 'no rule'}`);
  const [one, other] = [before[0], now[0]];
  if (one !== undefined && other !== undefined && texts.length === 0) {
    const names = Object.keys(other) as (keyof Value)[];
    const changed = names.filter((name) => !isDeepStrictEqual(one[name], other[name]));
    const text = (value: unknown) => toExcerpt(JSON.stringify(value) ?? 'none', maxTextLength);
    texts.push(
      ...changed.map((name) =>
        name === 'metadata'
          ? `metadata ${text(one[name])} -> ${text(other[name])}`
          : `${toKeyName(name)} changed`,
      ),
    );
  }
  return { from, to, texts };
}

/** Converts `shareThreshold` to `share_threshold`. */
function toKeyName(property: string): string {
  return property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function isSame(one: Known, other: Known): boolean {
  return isDeepStrictEqual(one, other);
}

function toValue({ position: _, descriptors: __, ...value }: RuleDescriptor) {
  const withoutLines = (block: NonNullable<RuleDescriptor['rateLimit']>) => ({
    ...block,
    replaces: block.replaces.map(({ name }) => ({ name, position: undefined })),
  });
  return {
    ...value,
    rateLimit: value.rateLimit && withoutLines(value.rateLimit),
    furtherLimits: value.furtherLimits.map(withoutLines),
  };
}

/** Such as `3 per minute, in shadow mode`; undefined if there is no rule. */
function describe(known: Known): string | undefined {
  if (known.length === 0) return undefined;
  return known
    .map((descriptor) => {
      const limits = describeLimits(descriptor).join(' and ') || 'no limit';
      const modes = limitModes
        .filter(({ property }) => descriptor[property])
        .map(({ name }) => `, in ${name.replaceAll('_', ' ')}`);
      const { untilMs } = descriptor;
      const end = untilMs === undefined ? '' : `, until ${toTimeText(untilMs)}`;
      return `${limits}${modes.join('')}${end}`;
    })
    .join('; ');
}

/** Most files belong to other domains, which is known without parsing. A name may contain escapes. */
function mayHaveDomainOf(rule: string, text: string): boolean {
  if (text.includes('\\') || /\s/.test(rule)) return true;
  const [first = ''] = rule.split('.', 1);
  return text.includes(first);
}
