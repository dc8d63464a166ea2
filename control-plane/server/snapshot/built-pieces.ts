// A built revision on its way out of the thread that built it: in pieces that each take a millisecond or two to take,
// so that the receiver can serve others between them.

import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  createDocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { Next, Steps } from '../../../shared/thread/job-thread.ts';
import type { BuildOutcome, BuiltSnapshots, GroupSnapshots } from './build.ts';
import type { Needs } from './building-job.ts';
import type { NodeGroup } from './node-groups.ts';
import type { Resource, Snapshot } from './snapshot.ts';

interface Head {
  readonly ok: boolean;
  /** Of one that is good and wanted. */
  readonly built: Pick<BuiltSnapshots, 'domains' | 'content' | 'policy' | 'policyText'> | undefined;
}

/** A domain's resources. In one message equal ones stay the same object. */
type Variants = Readonly<Record<Variant, Resource>>;
const variants = ['standard', 'lasting', 'extended'] as const;
type Variant = (typeof variants)[number];

type Found = { readonly problems: readonly Problem[] } | { readonly advice: readonly Problem[] };

type Piece =
  | Found
  | { readonly resources: readonly Variants[] }
  | { readonly leftOut: string; readonly fields: readonly string[] }
  /** The domains of groups that follow, by their numbers, and the versions of their snapshots. */
  | { readonly chosen: readonly number[]; readonly versions: Readonly<Record<Variant, string>> }
  | { readonly groups: readonly NodeGroup[] }
  /** Its pieces follow, where it is not known. */
  | { readonly document: string; readonly isKnown: boolean }
  | { readonly of: DocumentPiece };

const itemsAtOnce = 100;
const bytesAtOnce = 128 * 1024;
const fieldsAtOnce = 2_000;

/** `documents` are all that could be read. */
export function* toBuiltPieces(
  outcome: BuildOutcome,
  documents: readonly RuleDocument[],
  needs: Needs,
): Generator<Head | Piece, void> {
  const built = outcome.ok && needs !== 'problems' ? outcome.built : undefined;
  yield { ok: outcome.ok, built: built && toHead(built) };
  const problems = outcome.ok ? outcome.warnings : outcome.problems;
  yield* toPieces(problems, itemsAtOnce, (part) => ({ problems: part }));
  const advice = outcome.ok ? outcome.advice : [];
  yield* toPieces(advice, itemsAtOnce, (part) => ({ advice: part }));
  if (needs === 'problems') return;
  if (built !== undefined) {
    yield* toResourcePieces(built.groups);
    for (const [domain, all] of built.leftOut) {
      yield* toPieces(all, fieldsAtOnce, (fields) => ({ leftOut: domain, fields }));
    }
    yield* toGroupPieces(built.groups, built.domains);
  }
  for (const document of documents) {
    const isKnown = 'known' in needs && needs.known.has(document.file);
    yield { document: document.file, isKnown };
    if (isKnown) continue;
    for (const piece of toDocumentPieces(document)) yield { of: piece };
  }
}

function toHead({ domains, content, policy, policyText }: BuiltSnapshots): Head['built'] {
  return { domains, content, policy, policyText };
}

function* toPieces<Item, Made>(
  items: readonly Item[],
  atOnce: number,
  make: (part: readonly Item[]) => Made,
): Generator<Made, void> {
  for (let at = 0; at < items.length; at += atOnce) yield make(items.slice(at, at + atOnce));
}

/** Each once, in whatever group it is. */
function* toResourcePieces(groups: readonly GroupSnapshots[]): Generator<Piece, void> {
  const sent = new Set<string>();
  const seen = new Set<Snapshot>();
  let resources: Variants[] = [];
  let bytes = 0;
  for (const { extended, lasting, standard } of groups) {
    if (seen.has(standard)) continue;
    seen.add(standard);
    for (const [name, resource] of standard.resources) {
      if (sent.has(name)) continue;
      sent.add(name);
      resources.push({
        standard: resource,
        lasting: lasting.resources.get(name) ?? resource,
        extended: extended.resources.get(name) ?? resource,
      });
      bytes += resource.any.length;
      if (bytes < bytesAtOnce && resources.length < itemsAtOnce) continue;
      yield { resources };
      resources = [];
      bytes = 0;
    }
  }
  yield { resources };
}

function* toGroupPieces(
  groups: readonly GroupSnapshots[],
  domains: readonly string[],
): Generator<Piece, void> {
  const numbers = new Map(domains.map((domain, number) => [domain, number]));
  let last: GroupSnapshots | undefined;
  for (const each of groups) {
    const { extended, lasting, standard } = each;
    if (standard !== last?.standard || extended !== last.extended || lasting !== last.lasting) {
      const versions = {
        standard: standard.version,
        lasting: lasting.version,
        extended: extended.version,
      };
      yield { chosen: each.domains.map((domain) => numbers.get(domain) ?? 0), versions };
    }
    last = each;
    yield { groups: [each.group] };
  }
}

export interface Received {
  readonly ok: boolean;
  readonly problems: readonly Problem[];
  readonly advice: readonly Problem[];
  readonly documents: readonly RuleDocument[];
  /** All but what is made of the documents. */
  readonly built: Omit<BuiltSnapshots, 'ruleSet'> | undefined;
}

/** `findKnown` has the documents that the thread was told of. */
export function* receiveBuilt(
  next: Next,
  findKnown: (path: string) => RuleDocument | undefined,
): Steps<Received> {
  const head = next() as Head | undefined;
  if (head === undefined) throw new Error('it sent nothing');
  const problems: Problem[] = [];
  const advice: Problem[] = [];
  const parts = new BuiltParts(head.built?.domains ?? [], findKnown);
  for (let piece = next() as Piece | undefined; piece; piece = next() as Piece | undefined) {
    if ('problems' in piece) problems.push(...piece.problems);
    else if ('advice' in piece) advice.push(...piece.advice);
    else parts.take(piece);
    yield;
  }
  const { documents, ...rest } = parts.toParts();
  const built = head.built && { ...head.built, ...rest, documents };
  return { ok: head.ok, problems, advice, documents, built };
}

class BuiltParts {
  readonly #domains: readonly string[];
  readonly #findKnown: (path: string) => RuleDocument | undefined;
  readonly #resources = new Map<string, Variants>();
  readonly #leftOut = new Map<string, string[]>();
  readonly #groups: GroupSnapshots[] = [];
  readonly #snapshots = new Map<string, Snapshot>();
  readonly #documents: RuleDocument[] = [];
  #chosen: Omit<GroupSnapshots, 'group'> | undefined;
  #joiner: ReturnType<typeof createDocumentJoiner> | undefined;

  constructor(domains: readonly string[], findKnown: (path: string) => RuleDocument | undefined) {
    this.#domains = domains;
    this.#findKnown = findKnown;
  }

  take(piece: Exclude<Piece, Found>): void {
    if ('resources' in piece) {
      for (const each of piece.resources) this.#takeResource(each);
    } else if ('leftOut' in piece) {
      const fields = this.#leftOut.get(piece.leftOut) ?? [];
      fields.push(...piece.fields);
      this.#leftOut.set(piece.leftOut, fields);
    } else if ('chosen' in piece) {
      const domains = piece.chosen.map((number) => this.#domains[number] ?? '');
      const toSnapshot = (variant: Variant) =>
        this.#toSnapshot(domains, variant, piece.versions[variant]);
      const [standard, lasting, extended] = [
        toSnapshot('standard'),
        toSnapshot('lasting'),
        toSnapshot('extended'),
      ];
      this.#chosen = { domains, standard, lasting, extended };
    } else if ('groups' in piece) {
      for (const group of piece.groups) {
        if (this.#chosen === undefined) throw new Error('a piece of a group is missing');
        this.#groups.push(Object.freeze({ group, ...this.#chosen }));
      }
    } else if ('of' in piece) this.#joiner?.take(piece.of);
    else this.#takeDocument(piece);
  }

  toParts(): Pick<BuiltSnapshots, 'groups' | 'leftOut' | 'documents'> {
    this.#endDocument();
    return { groups: this.#groups, leftOut: this.#leftOut, documents: this.#documents };
  }

  #takeResource({ standard, lasting, extended }: Variants): void {
    const known = new Map<Resource, Resource>();
    const toOwn = (resource: Resource): Resource => {
      const { buffer, byteOffset, length } = resource.any;
      const own = known.get(resource) ?? {
        ...resource,
        any: Buffer.from(buffer as ArrayBuffer, byteOffset, length),
      };
      known.set(resource, own);
      return own;
    };
    this.#resources.set(standard.name, {
      standard: toOwn(standard),
      lasting: toOwn(lasting),
      extended: toOwn(extended),
    });
  }

  /** Of equal ones the same object. */
  #toSnapshot(domains: readonly string[], variant: Variant, version: string): Snapshot {
    const known = this.#snapshots.get(version);
    if (known !== undefined) return known;
    const resources = new Map<string, Resource>();
    for (const domain of domains) {
      const resource = this.#resources.get(domain)?.[variant];
      if (resource !== undefined) resources.set(domain, resource);
    }
    const snapshot = { version, resources };
    this.#snapshots.set(version, snapshot);
    return snapshot;
  }

  #takeDocument({ document, isKnown }: { document: string; isKnown: boolean }): void {
    this.#endDocument();
    if (!isKnown) {
      this.#joiner = createDocumentJoiner();
      return;
    }
    const known = this.#findKnown(document);
    if (known === undefined) throw new Error('a document that was known is not known any more');
    this.#documents.push(known);
  }

  #endDocument(): void {
    if (this.#joiner !== undefined) this.#documents.push(this.#joiner.toDocument());
    this.#joiner = undefined;
  }
}
