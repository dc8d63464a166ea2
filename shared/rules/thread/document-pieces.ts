// A rules document as it is sent between threads or processes: in pieces that each take a millisecond or two to read,
// so that the receiver can serve other callers between them. Parts that the receiver has are sent as their names, and
// stay the same objects.
//
// document -> parts (document-parts.ts): neighbouring rules, each part with a name -> pieces: one part, or the names of
// parts that the receiver has; the first piece has the fields of the document itself.
import type { Position } from '../problem/reporter.ts';
import type { JsonValue } from '../rule.ts';
import type {
  RateLimitBlock,
  Replacement,
  RuleDescriptor,
  RuleDocument,
} from '../rule-document.ts';
import { type DescriptorFlags, descriptorFlags, toFlags } from '../rule-keys.ts';
import {
  type FlatDescriptor,
  type FlatLimit,
  type KnownParts,
  type PartNames,
  type Point,
  rememberParts,
  splitDocument,
} from './document-parts.ts';

/** Plain data, for structured cloning. */
export interface DocumentPiece {
  /** Fields of the document itself; in the first piece only. */
  readonly head: Head | undefined;
  /** The names of parts that precede `descriptors` and that the receiver has. */
  readonly known: readonly string[];
  /** A part, parents before their children. */
  readonly descriptors: readonly FlatDescriptor[];
  /** The name of a whole part, where parts are named. */
  readonly name: string | undefined;
  /**
   * Source lines of `descriptors` that no earlier piece had, by number: the text of a line is sent once, however many
   * rules are on it.
   */
  readonly lines: readonly (readonly [line: number, text: string])[];
}

type Head = Pick<RuleDocument, 'file' | 'domain'> & {
  readonly point: Point;
  /** The text of the line of `point`, if the position has it. */
  readonly line: string | undefined;
  /** The number of descriptors directly below. */
  readonly children: number;
};

/** Some thousand rules: finding them at the receiver takes less than a millisecond. */
const knownAtOnce = 25;

/** The parts that the receiver has, by the sender's names. */
export interface ReceiversParts {
  readonly names: PartNames;
  readonly known: Pick<ReadonlySet<string>, 'has'>;
}

/** `receivers` is undefined if parts are not named. */
export function* toDocumentPieces(
  document: RuleDocument,
  receivers?: ReceiversParts,
): Generator<DocumentPiece, void> {
  const { file, domain, position, descriptors } = document;
  const point = position && { line: position.line, column: position.column };
  const sentLines = new Set<number>();
  let head: Head | undefined = {
    ...{ file, domain, point },
    line: position?.sourceLine,
    children: descriptors.length,
  };
  let same: string[] = [];
  const noPart = { descriptors: [], name: undefined, lines: [] };

  for (const part of splitDocument(document)) {
    const name = part.isComplete ? receivers?.names.nameOf(part) : undefined;
    if (name !== undefined && receivers?.known.has(name)) {
      same.push(name);
      if (same.length < knownAtOnce) continue;
      yield { head, known: same, ...noPart };
    } else {
      const { descriptors: flat, lines } = part.flat;
      const added = [...lines].filter(([line]) => !sentLines.has(line));
      for (const [line] of added) sentLines.add(line);
      yield { head, known: same, descriptors: flat, name, lines: added };
    }
    head = undefined;
    same = [];
  }
  if (head !== undefined || same.length > 0) yield { head, known: same, ...noPart };
}

/** Joins the pieces of one document, in order. */
export interface DocumentJoiner {
  receive(piece: DocumentPiece): void;
  /** Throws before the last piece was added. */
  toDocument(): RuleDocument;
}

interface OpenList {
  readonly items: RuleDescriptor[];
  /** The number of descriptors that are still missing. */
  left: number;
}

const none: readonly never[] = Object.freeze([]);
/** The largest number of texts that are shared wherever they occur. */
const maxShared = 1_000;

/** `known` has the parts that the sender assumes to be here. */
export function createDocumentJoiner(known: KnownParts = new Map()): DocumentJoiner {
  const lines = new Map<number, string>();
  const open: OpenList[] = [];
  const texts = new Map<string, string>();
  const lineTexts = new Map<string, string>();
  const limits = new Map<string, RateLimitBlock>();
  let limitsOfPiece = new Map<FlatLimit, RateLimitBlock>();
  const parts = new Map<string, readonly RuleDescriptor[]>();
  let document: RuleDocument | undefined;

  /** Every copy from another thread is a separate text, and a large document has few different ones. */
  function share<Text extends string>(text: Text, known = texts): Text {
    const found = known.get(text);
    if (found !== undefined) return found as Text;
    if (known.size < maxShared) known.set(text, text);
    return text;
  }

  function toPosition(point: Point): Position | undefined {
    return point && Object.freeze({ ...point, sourceLine: lines.get(point.line) });
  }

  function openList(length: number): readonly RuleDescriptor[] {
    if (length === 0) return none;
    const items: RuleDescriptor[] = [];
    open.push({ items, left: length });
    return items;
  }

  /** Returns the same object for equal limits: a large document has few different ones. */
  function toLimit(row: FlatLimit): RateLimitBlock {
    const ofPiece = limitsOfPiece.get(row);
    if (ofPiece !== undefined) return ofPiece;
    const identity = JSON.stringify(row);
    const limit = limits.get(identity) ?? createLimit(row);
    limitsOfPiece.set(row, limit);
    if (limit.replaces.length === 0 && limits.size < maxShared) limits.set(identity, limit);
    return limit;
  }

  function createLimit(row: FlatLimit): RateLimitBlock {
    const [requestsPerUnit, unit, unitMultiplier, algorithm, burst, ...others] = row;
    const [countOverLimit, lease, unlimited, name, replaced] = others;
    const replaces = replaced.map(
      ([each, point]): Replacement => Object.freeze({ name: each, position: toPosition(point) }),
    );
    return Object.freeze({
      ...{ requestsPerUnit, unit: unit && share(unit), unitMultiplier, burst },
      ...{ algorithm: share(algorithm), countOverLimit, lease, unlimited, name },
      replaces: replaces.length === 0 ? none : Object.freeze(replaces),
    });
  }

  function add([key, value, bits, untilMs, metadata, limit, further, ...others]: FlatDescriptor) {
    const [line, column, children] = others;
    const list = currentList();
    if (--list.left === 0) open.pop();
    if (metadata !== undefined) freezeDeeply(metadata);
    const point = line === undefined || column === undefined ? undefined : { line, column };
    const descriptor: RuleDescriptor = Object.freeze({
      key: share(key),
      value,
      rateLimit: limit && toLimit(limit),
      furtherLimits: further === undefined ? none : Object.freeze(further.map(toLimit)),
      untilMs,
      metadata,
      descriptors: openList(children),
      position: toPosition(point),
      ...toFlagsOf(bits),
    });
    list.items.push(descriptor);
    if (list.left === 0) Object.freeze(list.items);
  }

  function currentList(): OpenList {
    const list = open.at(-1);
    if (list === undefined) throw new Error('a piece of a document has a descriptor too many');
    return list;
  }

  function addKnown(name: string): void {
    const part = known.get(name);
    if (part === undefined) throw new Error('a part of a document that was known is not known');
    const list = currentList();
    list.left -= part.length;
    if (list.left < 0) throw new Error('a piece of a document has a descriptor too many');
    for (const descriptor of part) list.items.push(descriptor);
    if (list.left === 0) {
      open.pop();
      Object.freeze(list.items);
    }
    parts.set(name, part);
  }

  return {
    receive({ head, known: same, descriptors, name, lines: added }) {
      if (head !== undefined) {
        const { file, domain, point, line, children } = head;
        const position = point && Object.freeze({ ...point, sourceLine: line });
        document = Object.freeze({ file, domain, position, descriptors: openList(children) });
      }
      same.forEach(addKnown);
      if (descriptors.length === 0) return;
      limitsOfPiece = new Map();
      for (const [line, text] of added) lines.set(line, share(text, lineTexts));
      const { items } = currentList();
      const first = items.length;
      descriptors.forEach(add);
      if (name !== undefined) parts.set(name, items.slice(first));
    },
    toDocument() {
      if (document === undefined || open.length > 0) {
        throw new Error('a piece of a document is missing');
      }
      if (parts.size > 0) rememberParts(document, parts);
      return document;
    },
  };
}

function toFlagsOf(bits: number): DescriptorFlags {
  const known = flagsOfBits.get(bits) ?? toFlags((flag) => isSet(bits, flag));
  flagsOfBits.set(bits, known);
  return known;
}

function isSet(bits: number, flag: (typeof descriptorFlags)[number]): boolean {
  return (bits & (1 << descriptorFlags.indexOf(flag))) !== 0;
}

/** At most one for each combination of the flags. */
const flagsOfBits = new Map<number, DescriptorFlags>();

function freezeDeeply(value: JsonValue): void {
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) freezeDeeply(member);
  Object.freeze(value);
}
