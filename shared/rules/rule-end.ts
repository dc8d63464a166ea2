// Rules that end by themselves: parses the time in `until`, and makes documents as they are at a given time. Decisions
// never read a rule's end: the tree that they search does not contain a rule that has ended (behaviour:
// rules-that-end).
import { runAtOnce } from '../in-slices.ts';
import { MadeOnce } from '../made-once.ts';
import { sortInSteps } from '../sorted-in-steps.ts';
import { toExcerpt } from '../text-excerpt.ts';
import { type RuleDescriptor, type RuleDocument, toCompositeKey } from './rule-document.ts';
import type { MapReader } from './yaml/map-reader.ts';
import type { TreeNode } from './yaml/yaml-node.ts';

const dayMs = 86_400_000;
/** How far ahead `until` may be, by the clock of the program that reads the rules. */
export const mostDaysAhead = 366;

export function isTooFar(untilMs: number, nowMs: number): boolean {
  return untilMs > nowMs + mostDaysAhead * dayMs;
}

const sample = '2026-11-24T18:00:00Z';
const timePattern = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
const withoutOffset = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/;

/** Wall time in milliseconds of an RFC 3339 text with an offset; undefined for any other text. */
export function parseTime(text: string): number | undefined {
  const [, date = '', time = '', fraction = '', offset = ''] = timePattern.exec(text) ?? [];
  if (date === '') return undefined;
  // Date.parse would accept a day or an hour beyond the last one as part of the next month or day.
  const local = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(local) || toTimeText(local) !== `${date}T${time}Z`) return undefined;
  const parsed = Date.parse(`${date}T${time}${fraction.slice(0, 4)}${offset.toUpperCase()}`);
  return Number.isNaN(parsed) ? undefined : parsed;
}

/** RFC 3339 in UTC, with a fraction unless it is zero. */
export function toTimeText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** The end that this `until` gives its descriptor; undefined if a problem was reported. */
export function readUntil(fields: MapReader, node: TreeNode): number | undefined {
  const text = 'source' in node ? node.source : undefined;
  if (text === undefined) return fields.refuse(node, 'until', 'a time', `write it as ${sample}`);
  const untilMs = parseTime(text);
  if (untilMs !== undefined) return untilMs;
  const shown = text === '' ? 'is empty' : `is '${toExcerpt(text)}'`;
  const isLocal = withoutOffset.test(text);
  const message = `until ${shown}, ${isLocal ? 'a time without an offset' : 'not a time'}`;
  const hint = isLocal
    ? 'add Z for UTC, or an offset such as +01:00'
    : `write date, time and offset, such as ${sample}`;
  fields.error('invalid-until', 'until', message, hint);
  return undefined;
}

const knownEnds = new WeakMap<RuleDocument, readonly number[]>();

/** The times at which rules of the document end, in milliseconds, in ascending order. */
function endsOf(document: RuleDocument): readonly number[] {
  const known = knownEnds.get(document);
  if (known !== undefined) return known;
  const ends: number[] = [];
  const visit = ({ untilMs, descriptors }: RuleDescriptor) => {
    if (untilMs !== undefined) ends.push(untilMs);
    descriptors.forEach(visit);
  };
  document.descriptors.forEach(visit);
  ends.sort((a, b) => a - b);
  knownEnds.set(document, ends);
  return ends;
}

/**
 * Stores the ends of a document that the caller has already walked, which saves walking all rules again. Yields so that
 * the thread can serve other callers.
 */
export function* rememberEnds(
  document: RuleDocument,
  ends: readonly number[],
): Generator<void, void> {
  knownEnds.set(document, yield* sortInSteps(ends, (a, b) => a - b));
}

/** Whether any rule of the document has an end, even a past one. */
export function hasEnds(document: RuleDocument): boolean {
  return endsOf(document).length > 0;
}

/** How many rules of the documents have ended: while the count is the same, `documentsAt` is the same. */
export function countEnded(documents: readonly RuleDocument[], nowMs: number): number {
  return documents.reduce((sum, document) => sum + countUpTo(endsOf(document), nowMs), 0);
}

/** The next end; undefined when every end is past. */
export function nextEndOf(documents: readonly RuleDocument[], nowMs: number): number | undefined {
  let next: number | undefined;
  for (const document of documents) {
    const ends = endsOf(document);
    const endMs = ends[countUpTo(ends, nowMs)];
    if (endMs !== undefined && (next === undefined || endMs < next)) next = endMs;
  }
  return next;
}

function countUpTo(sorted: readonly number[], ms: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

const knownStates = new MadeOnce<readonly RuleDocument[], readonly RuleDocument[]>();

/** As `findDocumentsAt`, without pauses. */
export function documentsAt(
  documents: readonly RuleDocument[],
  nowMs: number,
): readonly RuleDocument[] {
  return runAtOnce(findDocumentsAt(documents, nowMs));
}

/**
 * The documents without the rules that have ended at `nowMs`, and without those that rules with an end replace for now.
 * Documents of one domain are treated as merged. A document without such rules stays the same object, and so does the
 * whole list between two ends. Yields so that the thread can serve other callers.
 */
export function* findDocumentsAt(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, readonly RuleDocument[]> {
  if (!documents.some(hasEnds)) return documents;
  const making = () => leavingOutEnded(documents, nowMs);
  return yield* knownStates.of(documents, making, countEnded(documents, nowMs));
}

function* leavingOutEnded(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, readonly RuleDocument[]> {
  let seen = 0;

  function* addReplaced(
    names: Set<string>,
    descriptors: readonly RuleDescriptor[],
  ): Generator<void, ReadonlySet<string>> {
    for (const { key, value, untilMs } of descriptors) {
      if (++seen % descriptorsAtOnce === 0) yield;
      if (untilMs !== undefined && untilMs > nowMs) names.add(toCompositeKey(key, value));
    }
    return names;
  }

  function* descriptorsAt(
    descriptors: readonly RuleDescriptor[],
    replaced: ReadonlySet<string>,
  ): Generator<void, readonly RuleDescriptor[]> {
    const remaining: RuleDescriptor[] = [];
    let isSame = true;
    for (const descriptor of descriptors) {
      if (++seen % descriptorsAtOnce === 0) yield;
      const { key, value, untilMs, descriptors: below } = descriptor;
      const isThere =
        untilMs === undefined
          ? replaced.size === 0 || !replaced.has(toCompositeKey(key, value))
          : untilMs > nowMs;
      if (!isThere) {
        isSame = false;
        continue;
      }
      const belowNow =
        below.length === 0
          ? below
          : yield* descriptorsAt(below, yield* addReplaced(new Set(), below));
      isSame &&= belowNow === below;
      remaining.push(
        belowNow === below ? descriptor : Object.freeze({ ...descriptor, descriptors: belowNow }),
      );
    }
    return isSame ? descriptors : Object.freeze(remaining);
  }

  const replaced = new Map<string, Set<string>>();
  for (const { domain, descriptors } of documents) {
    const names = replaced.get(domain) ?? new Set();
    replaced.set(domain, names);
    yield* addReplaced(names, descriptors);
  }
  const remaining: RuleDocument[] = [];
  for (const document of documents) {
    const names = replaced.get(document.domain) ?? new Set();
    const isTouched = hasEnds(document) || names.size > 0;
    const descriptors = isTouched
      ? yield* descriptorsAt(document.descriptors, names)
      : document.descriptors;
    remaining.push(
      descriptors === document.descriptors ? document : Object.freeze({ ...document, descriptors }),
    );
  }
  return remaining;
}

/** How many descriptors are read between two yields: this takes well below a millisecond. */
const descriptorsAtOnce = 500;

/** `until 18:00:00Z (in 42 min)`; with the date if it is more than a day ahead. */
export function describeEnd(untilMs: number, nowMs: number): string {
  const text = toTimeText(untilMs);
  const leftMs = untilMs - nowMs;
  return `until ${leftMs < dayMs ? text.slice(11) : text} (in ${toSpan(leftMs)})`;
}

function toSpan(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}
