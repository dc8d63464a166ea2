// Splits a rules document for the way between threads or processes: into pieces that each take a
// millisecond or two to read, so that the receiver can serve others between them.
import type { Position } from '../problem/reporter.ts';
import type { JsonValue } from '../rule.ts';
import type {
  RateLimitBlock,
  Replacement,
  RuleDescriptor,
  RuleDocument,
} from '../rule-document.ts';

/** Plain data, as structured cloning takes it. */
export interface DocumentPiece {
  /** Fields of the document itself; in the first piece only. */
  readonly head: Head | undefined;
  /** Parents before their children. */
  readonly descriptors: readonly FlatDescriptor[];
  /** Source lines of `descriptors` that no earlier piece had, by number. */
  readonly lines: readonly (readonly [line: number, text: string])[];
}

/** The text of a line is sent once, however many rules are on it. */
type Place = Pick<Position, 'line' | 'column'> | undefined;

type Head = Pick<RuleDocument, 'file' | 'domain'> & Counted;

interface Counted {
  readonly place: Place;
  /** How many descriptors are directly below. */
  readonly children: number;
}

type FlatDescriptor = Counted & {
  readonly fields: Omit<RuleDescriptor, 'rateLimit' | 'furtherLimits' | 'descriptors' | 'position'>;
  readonly limit: FlatLimit | undefined;
  readonly furtherLimits: readonly FlatLimit[];
};

type FlatLimit = Omit<RateLimitBlock, 'replaces'> & {
  readonly replaces: readonly { readonly name: string; readonly place: Place }[];
};

/** Size limit of a piece. A rule with more text than this is a piece of its own. */
const maxDescriptors = 100;
const maxCharacters = 64 * 1024;

export function* toDocumentPieces(document: RuleDocument): Generator<DocumentPiece, void> {
  const sentLines = new Set<number>();
  let head: Head | undefined;
  let descriptors: FlatDescriptor[] = [];
  let lines: (readonly [number, string])[] = [];
  let characters = 0;

  function toPlace(position: Position | undefined): Place {
    if (position === undefined) return undefined;
    const { line, column, sourceLine } = position;
    if (sourceLine !== undefined && !sentLines.has(line)) {
      sentLines.add(line);
      lines.push([line, sourceLine]);
      characters += sourceLine.length;
    }
    return { line, column };
  }

  function toFlatLimit({ replaces, ...limit }: RateLimitBlock): FlatLimit {
    const flat = replaces.map(({ name, position }) => {
      characters += name.length;
      return { name, place: toPlace(position) };
    });
    return { ...limit, replaces: flat };
  }

  function take(): DocumentPiece {
    const piece = { head, descriptors, lines };
    head = undefined;
    descriptors = [];
    lines = [];
    characters = 0;
    return piece;
  }

  function* addAll(all: readonly RuleDescriptor[]): Generator<DocumentPiece, void> {
    for (const { rateLimit, furtherLimits, descriptors: below, position, ...fields } of all) {
      const { key, value, metadata } = fields;
      characters += key.length + value.length;
      if (metadata !== undefined) characters += JSON.stringify(metadata).length;
      descriptors.push({
        fields,
        limit: rateLimit && toFlatLimit(rateLimit),
        furtherLimits: furtherLimits.map(toFlatLimit),
        place: toPlace(position),
        children: below.length,
      });
      if (descriptors.length >= maxDescriptors || characters >= maxCharacters) yield take();
      if (below.length > 0) yield* addAll(below);
    }
  }

  const { file, domain, position } = document;
  head = { file, domain, place: toPlace(position), children: document.descriptors.length };
  yield* addAll(document.descriptors);
  if (head !== undefined || descriptors.length > 0) yield take();
}

/** Takes the pieces of one document in order. */
export interface DocumentJoiner {
  take(piece: DocumentPiece): void;
  /** Throws before the last piece. */
  toDocument(): RuleDocument;
}

interface OpenList {
  readonly items: RuleDescriptor[];
  /** How many are still to come. */
  left: number;
}

const none: readonly never[] = Object.freeze([]);
/** Texts that are the same object wherever they stand. */
const maxShared = 1_000;

export function createDocumentJoiner(): DocumentJoiner {
  const lines = new Map<number, string>();
  const open: OpenList[] = [];
  const texts = new Map<string, string>();
  let document: RuleDocument | undefined;

  /** Each copy from another thread is a text of its own, and a large document has few of these. */
  function share<Text extends string>(text: Text): Text {
    const known = texts.get(text);
    if (known !== undefined) return known as Text;
    if (texts.size < maxShared) texts.set(text, text);
    return text;
  }

  function toPosition(place: Place): Position | undefined {
    return place && Object.freeze({ ...place, sourceLine: lines.get(place.line) });
  }

  function openList(length: number): readonly RuleDescriptor[] {
    if (length === 0) return none;
    const items: RuleDescriptor[] = [];
    open.push({ items, left: length });
    return items;
  }

  function toLimit({ replaces, ...limit }: FlatLimit): RateLimitBlock {
    const { unit, algorithm } = limit;
    const texts = { unit: unit && share(unit), algorithm: share(algorithm) };
    if (replaces.length === 0) return Object.freeze({ ...limit, ...texts, replaces: none });
    const read = replaces.map(
      ({ name, place }): Replacement => Object.freeze({ name, position: toPosition(place) }),
    );
    return Object.freeze({ ...limit, ...texts, replaces: Object.freeze(read) });
  }

  function add({ fields, limit, furtherLimits, place, children }: FlatDescriptor): void {
    const list = open.at(-1);
    if (list === undefined) throw new Error('a piece of a document has a descriptor too many');
    if (--list.left === 0) open.pop();
    if (fields.metadata !== undefined) freezeDeeply(fields.metadata);
    const descriptor = Object.freeze({
      ...fields,
      rateLimit: limit && toLimit(limit),
      key: share(fields.key),
      furtherLimits: furtherLimits.length === 0 ? none : Object.freeze(furtherLimits.map(toLimit)),
      descriptors: openList(children),
      position: toPosition(place),
    });
    list.items.push(descriptor);
    if (list.left === 0) Object.freeze(list.items);
  }

  return {
    take({ head, descriptors, lines: added }) {
      for (const [line, text] of added) lines.set(line, text);
      if (head !== undefined) {
        const { file, domain, place, children } = head;
        const position = toPosition(place);
        document = Object.freeze({ file, domain, position, descriptors: openList(children) });
      }
      descriptors.forEach(add);
    },
    toDocument() {
      if (document === undefined || open.length > 0) {
        throw new Error('a piece of a document is missing');
      }
      return document;
    },
  };
}

function freezeDeeply(value: JsonValue): void {
  if (typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) freezeDeeply(member);
  Object.freeze(value);
}
