// Splits a rules document into named parts, each of which takes a millisecond or two to copy. Equal parts of two
// documents have the same name, so they are not copied again. The end of a part depends on its rules alone: adding or
// removing a rule changes only its own part.
import { hash } from 'node:crypto';
import type { Position } from '../problem/reporter.ts';
import type { RateLimitBlock, RuleDescriptor, RuleDocument } from '../rule-document.ts';
import { descriptorFlags } from '../rule-keys.ts';

/** Neighbouring descriptors of one level, with all that is below them. */
export class DocumentPart {
  readonly descriptors: readonly RuleDescriptor[];
  /** False for a single rule that is too large for one part: its child rules follow in further parts. */
  readonly isComplete: boolean;
  #flat: FlatPart | undefined;

  constructor(descriptors: readonly RuleDescriptor[], isComplete: boolean) {
    this.descriptors = descriptors;
    this.isComplete = isComplete;
  }

  /** Made on first use: a part that the receiver already has is not copied. */
  get flat(): FlatPart {
    this.#flat ??= flatten(this);
    return this.#flat;
  }
}

/** In short rules; a rule with more text than this is a part of its own. */
const mostWeight = 100;
const charactersOfWeight = 640;

export function* splitDocument({ descriptors }: RuleDocument): Generator<DocumentPart, void> {
  yield* splitList(descriptors);
}

function* splitList(all: readonly RuleDescriptor[]): Generator<DocumentPart, void> {
  let part: RuleDescriptor[] = [];
  let weight = 0;
  for (const descriptor of all) {
    const own = weigh(descriptor);
    if (part.length > 0 && weight + own > mostWeight) {
      yield new DocumentPart(part, true);
      part = [];
      weight = 0;
    }
    const { descriptors: below } = descriptor;
    if (own > mostWeight && below.length > 0) {
      yield new DocumentPart([descriptor], false);
      yield* splitList(below);
      continue;
    }
    part.push(descriptor);
    weight += own;
    if (!endsPart(descriptor)) continue;
    yield new DocumentPart(part, true);
    part = [];
    weight = 0;
  }
  if (part.length > 0) yield new DocumentPart(part, true);
}

/** The weight of a rule with all that is below it; of a large one only that it is above the limit. */
function weigh({ key, value, metadata, rateLimit, descriptors }: RuleDescriptor): number {
  let characters = key.length + value.length;
  if (metadata !== undefined) characters += JSON.stringify(metadata).length;
  for (const { name } of rateLimit?.replaces ?? []) characters += name.length;
  let weight = 1 + Math.floor(characters / charactersOfWeight);
  for (const below of descriptors) {
    if (weight > mostWeight) break;
    weight += weigh(below);
  }
  return weight;
}

const hashedCharacters = 32;

/** True for about one in 64, by its name alone (FNV-1a). */
function endsPart({ key, value }: RuleDescriptor): boolean {
  const name = value === '' ? key : value;
  let sum = 0x811c9dc5;
  for (let at = Math.max(0, name.length - hashedCharacters); at < name.length; at++) {
    sum = Math.imul(sum ^ name.charCodeAt(at), 0x01000193);
  }
  return sum >>> 26 === 0;
}

/** Without the text of the line. */
export type Point = Pick<Position, 'line' | 'column'> | undefined;

/** A rule as a row of plain data, for structured cloning: the names of fields would take five times the space of their
 * values. */
export type FlatDescriptor = readonly [
  key: string,
  value: string,
  /** One bit for each of descriptorFlags. */
  flags: number,
  untilMs: RuleDescriptor['untilMs'],
  metadata: RuleDescriptor['metadata'],
  limit: FlatLimit | undefined,
  furtherLimits: readonly FlatLimit[] | undefined,
  line: number | undefined,
  column: number | undefined,
  /** The number of descriptors directly below. */
  children: number,
];

/** Equal limits of a part are the same row, which is copied once. */
export type FlatLimit = readonly [
  requestsPerUnit: number,
  unit: RateLimitBlock['unit'],
  unitMultiplier: number,
  algorithm: RateLimitBlock['algorithm'],
  burst: RateLimitBlock['burst'],
  countOverLimit: boolean,
  lease: RateLimitBlock['lease'],
  unlimited: boolean,
  name: string,
  replaces: readonly (readonly [name: string, point: Point])[],
];

export interface FlatPart {
  /** Parents before their children. */
  readonly descriptors: readonly FlatDescriptor[];
  /** The texts of the lines in their positions, by number. */
  readonly lines: ReadonlyMap<number, string>;
}

function flatten({ descriptors, isComplete }: DocumentPart): FlatPart {
  const flat: FlatDescriptor[] = [];
  const lines = new Map<number, string>();
  const limits = new Map<string, FlatLimit>();

  function toPoint(position: Position | undefined): Point {
    if (position === undefined) return undefined;
    const { line, column, sourceLine } = position;
    if (sourceLine !== undefined) lines.set(line, sourceLine);
    return { line, column };
  }

  function toFlatLimit(limit: RateLimitBlock): FlatLimit {
    const { requestsPerUnit, unit, unitMultiplier, algorithm, burst } = limit;
    const { countOverLimit, lease, unlimited, name } = limit;
    const replaces = limit.replaces.map((each) => [each.name, toPoint(each.position)] as const);
    const row: FlatLimit = [
      ...([requestsPerUnit, unit, unitMultiplier, algorithm, burst] as const),
      ...([countOverLimit, lease, unlimited, name, replaces] as const),
    ];
    const identity = JSON.stringify(row);
    const known = limits.get(identity);
    if (known === undefined) limits.set(identity, row);
    return known ?? row;
  }

  function add(descriptor: RuleDescriptor): void {
    const { key, value, untilMs, metadata, rateLimit, furtherLimits, position } = descriptor;
    const { descriptors: below } = descriptor;
    const point = toPoint(position);
    flat.push([
      ...([key, value, toFlagBits(descriptor), untilMs, metadata] as const),
      rateLimit && toFlatLimit(rateLimit),
      furtherLimits.length === 0 ? undefined : furtherLimits.map(toFlatLimit),
      point?.line,
      point?.column,
      below.length,
    ]);
    if (isComplete) below.forEach(add);
  }

  descriptors.forEach(add);
  return { descriptors: flat, lines };
}

function toFlagBits(descriptor: RuleDescriptor): number {
  return descriptorFlags.reduce(
    (bits, { property }, at) => (descriptor[property] ? bits | (1 << at) : bits),
    0,
  );
}

/** Names of whole parts. */
export interface PartNames {
  /** Equal for equal parts, also in their positions and the texts of their lines. */
  nameOf(part: DocumentPart): string;
}

/** Digests as names, for a sender that has parsed the document again; for one document. */
export class PartDigests implements PartNames {
  /** The texts of long lines are cached: many parts may be on one. */
  readonly #longLines = new Map<number, string>();

  nameOf({ flat: { descriptors, lines } }: DocumentPart): string {
    const texts = Array.from(lines, ([line, text]) => this.#digestLine(line, text));
    return hash('sha256', JSON.stringify([descriptors, texts]), 'base64');
  }

  #digestLine(line: number, text: string): string {
    if (text.length <= longestPlain) return text;
    const known = this.#longLines.get(line) ?? hash('sha256', text, 'base64');
    this.#longLines.set(line, known);
    return known;
  }
}

const longestPlain = 200;

/** Numbers as names, for a sender whose unchanged parts are the same objects. */
export class PartNumbers implements PartNames {
  /** The names, by the first descriptor of the part. */
  readonly #named = new WeakMap<
    RuleDescriptor,
    { readonly descriptors: readonly RuleDescriptor[]; readonly name: string }
  >();
  #last = 0;

  nameOf({ descriptors }: DocumentPart): string {
    const first = descriptors[0] as RuleDescriptor;
    const known = this.#named.get(first);
    const isSame =
      known?.descriptors.length === descriptors.length &&
      known.descriptors.every((each, at) => each === descriptors[at]);
    if (isSame) return known.name;
    const name = String(++this.#last);
    this.#named.set(first, { descriptors, name });
    return name;
  }
}

/** The descriptors of whole parts, by name. */
export type KnownParts = ReadonlyMap<string, readonly RuleDescriptor[]>;

/** Keyed by the top level of the document, which stays the same object when the document is renamed. */
const knownParts = new WeakMap<readonly RuleDescriptor[], KnownParts>();

/** Yields so that the thread can serve other callers. */
export function* findParts(document: RuleDocument): Generator<void, KnownParts> {
  const known = knownParts.get(document.descriptors);
  if (known !== undefined) return known;
  const parts = new Map<string, readonly RuleDescriptor[]>();
  const digests = new PartDigests();
  for (const part of splitDocument(document)) {
    if (part.isComplete) parts.set(digests.nameOf(part), part.descriptors);
    yield;
  }
  rememberParts(document, parts);
  return parts;
}

/** The parts of a document that was joined from named parts; empty for any other. */
export function joinedPartsOf({ descriptors }: RuleDocument): KnownParts {
  return knownParts.get(descriptors) ?? noParts;
}

const noParts: KnownParts = new Map();

/** Stores the parts from which a document was joined. */
export function rememberParts({ descriptors }: RuleDocument, parts: KnownParts): void {
  knownParts.set(descriptors, parts);
}
