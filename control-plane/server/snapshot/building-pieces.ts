// Splits a revision on its way into the thread that builds it, and the result on its way out, into pieces that take a
// millisecond or two each, so that both sides can do other work between them.

import { runAtOnce } from '../../../shared/in-slices.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import {
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../../shared/rules/rule-document.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { Next, Steps } from '../../../shared/thread/job-thread.ts';
import type { Revision, StoredFile } from '../store/revision.ts';
import type { WorkHead } from '../work-thread.ts';
import type { BuildOptions, BuildOutcome, BuiltSnapshots, GroupSnapshots } from './build.ts';
import type { NodeGroup } from './node-groups.ts';
import {
  type Resource,
  type Snapshot,
  toVariants,
  type Variant,
  type Variants,
  variants,
} from './snapshot.ts';

export interface BuildJob {
  readonly revision: Pick<Revision, 'files' | 'problems'>;
  readonly options: BuildOptions;
  readonly nowMs: number;
  readonly needs: Needs;
}

/** What the thread returns besides the problems: nothing; the document of the only file, which is then not built, with
 * the rules of a name; or everything except the documents of these files. */
export type Needs =
  | 'problems'
  | { readonly rulesOf: string }
  | { readonly known: ReadonlySet<string> };

type JobHead = Omit<BuildJob, 'revision'> & Pick<Revision, 'problems'>;
/** A file with the beginning of its text, or more text of the preceding file. */
type FilePart = readonly [path: string, text: string] | string;

const charactersAtOnce = 64 * 1024;
const filesAtOnce = 200;

export function* toJobPieces({ revision, ...job }: BuildJob): Generator<object, void> {
  yield { work: 'build' } satisfies WorkHead;
  yield { ...job, problems: revision.problems } satisfies JobHead;
  yield* toFilePieces(revision.files);
}

export function receiveJob(next: Next): BuildJob {
  const { problems, ...job } = next() as JobHead;
  return { ...job, revision: { files: runAtOnce(receiveFiles(next)), problems } };
}

export function toFilePieces(files: readonly StoredFile[]): Generator<readonly FilePart[], void> {
  return toPieces(toFileParts(files), (part) => {
    const { length } = typeof part === 'string' ? part : part[1];
    return Math.max(1 / filesAtOnce, length / charactersAtOnce);
  });
}

function* toFileParts(files: readonly StoredFile[]): Generator<FilePart, void> {
  for (const { path, text } of files) {
    yield [path, text.slice(0, charactersAtOnce)];
    for (let at = charactersAtOnce; at < text.length; at += charactersAtOnce) {
      yield text.slice(at, at + charactersAtOnce);
    }
  }
}

/** Receives files until no piece is left. */
export function* receiveFiles(next: Next): Steps<StoredFile[]> {
  const files: { readonly path: string; readonly parts: string[] }[] = [];
  for (let all = next(); all !== undefined; all = next()) {
    for (const part of all as readonly FilePart[]) {
      if (typeof part === 'string') files.at(-1)?.parts.push(part);
      else files.push({ path: part[0], parts: [part[1]] });
    }
    yield;
  }
  const joined: StoredFile[] = [];
  for (const { path, parts } of files) {
    joined.push({ path, text: parts.join('') });
    yield;
  }
  return joined;
}

/** `sizeOf`: the share of a piece that an item occupies. */
function* toPieces<Item>(
  all: Iterable<Item>,
  sizeOf: (item: Item) => number,
): Generator<readonly Item[], void> {
  let items: Item[] = [];
  let size = 0;
  for (const item of all) {
    items.push(item);
    size += sizeOf(item);
    if (size < 1) continue;
    yield items;
    items = [];
    size = 0;
  }
  if (items.length > 0) yield items;
}

interface Head {
  readonly ok: boolean;
  /** The result of a valid build, if it is requested. */
  readonly built: Pick<BuiltSnapshots, 'domains' | 'content' | 'policy' | 'policyText'> | undefined;
}

/** The items of each list. */
interface Items {
  readonly problems: Problem;
  readonly advice: Problem;
  /** The resources of a domain. Within one piece, equal ones remain the same object. */
  readonly resources: Variants<Resource>;
  readonly leftOut: readonly [domain: string, fields: readonly string[]];
  /** The numbers of the domains of the following groups, and the versions of their snapshots. */
  readonly chosen: { readonly domains: readonly number[]; readonly versions: Variants<string> };
  readonly groups: NodeGroup;
  /** The path of one that the receiver knows, or a piece of another one. */
  readonly documents: string | DocumentPiece;
}
type List = keyof Items;
type Piece<Of extends List = List> = {
  readonly [Each in Of]: { readonly list: Each; readonly items: readonly Items[Each][] };
}[Of];

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
  const few = () => 1 / itemsAtOnce;
  yield* toListPieces('problems', outcome.ok ? outcome.warnings : outcome.problems, few);
  yield* toListPieces('advice', outcome.ok ? outcome.advice : [], few);
  if (needs === 'problems') return;
  if (built !== undefined) {
    yield* toListPieces('resources', listResources(built.groups), ({ standard }) =>
      Math.max(few(), standard.any.length / bytesAtOnce),
    );
    for (const [domain, all] of built.leftOut) {
      for (let at = 0; at < all.length; at += fieldsAtOnce) {
        yield { list: 'leftOut', items: [[domain, all.slice(at, at + fieldsAtOnce)]] };
      }
    }
    yield* toGroupPieces(built.groups, built.domains);
  }
  for (const document of documents) {
    const isKnown = 'known' in needs && needs.known.has(document.file);
    const pieces = isKnown ? [document.file] : toDocumentPieces(document);
    for (const piece of pieces) yield { list: 'documents', items: [piece] };
  }
}

function toHead({ domains, content, policy, policyText }: BuiltSnapshots): Head['built'] {
  return { domains, content, policy, policyText };
}

function* toListPieces<Of extends List>(
  list: Of,
  all: Iterable<Items[Of]>,
  sizeOf: (item: Items[Of]) => number,
): Generator<Piece<Of>, void> {
  for (const items of toPieces(all, sizeOf)) yield { list, items };
}

/** Each resource once, whichever groups it is in. */
function* listResources(groups: readonly GroupSnapshots[]): Generator<Variants<Resource>, void> {
  const sent = new Set<string>();
  for (const snapshots of new Map(groups.map((each) => [each.standard, each])).values()) {
    for (const [name, resource] of snapshots.standard.resources) {
      if (sent.has(name)) continue;
      sent.add(name);
      yield toVariants((variant) => snapshots[variant].resources.get(name) ?? resource);
    }
  }
}

function* toGroupPieces(
  groups: readonly GroupSnapshots[],
  domains: readonly string[],
): Generator<Piece, void> {
  const numbers = new Map(domains.map((domain, number) => [domain, number]));
  let last: GroupSnapshots | undefined;
  for (const each of groups) {
    if (each.standard !== last?.standard) {
      const chosen = {
        domains: each.domains.map((domain) => numbers.get(domain) ?? 0),
        versions: toVariants((variant) => each[variant].version),
      };
      yield { list: 'chosen', items: [chosen] };
    }
    last = each;
    yield { list: 'groups', items: [each.group] };
  }
}

export interface Received {
  readonly ok: boolean;
  readonly problems: readonly Problem[];
  readonly advice: readonly Problem[];
  readonly documents: readonly RuleDocument[];
  /** Everything except what is derived from the documents. */
  readonly built: Omit<BuiltSnapshots, 'ruleSet'> | undefined;
}

/** What the receiver has already. */
export interface ReceiverKnows {
  /** The documents that the thread was notified of. */
  readonly documents: ReadonlyMap<string, RuleDocument>;
  readonly findSnapshot: (version: string) => Snapshot | undefined;
}

export function* receiveBuilt(next: Next, known: ReceiverKnows): Steps<Received> {
  const head = next() as Head | undefined;
  if (head === undefined) throw new Error('it sent nothing');
  const lists = new Lists(head.built?.domains ?? [], known);
  for (let piece = next() as Piece | undefined; piece; piece = next() as Piece | undefined) {
    lists.add(piece);
    yield;
  }
  lists.endDocument();
  const { problems, advice, groups, leftOut, documents } = lists;
  const built = head.built && { ...head.built, groups, leftOut, documents };
  return { ok: head.ok, problems, advice, documents, built };
}

class Lists {
  readonly problems: Problem[] = [];
  readonly advice: Problem[] = [];
  readonly leftOut = new Map<string, string[]>();
  readonly groups: GroupSnapshots[] = [];
  readonly documents: RuleDocument[] = [];
  readonly #domains: readonly string[];
  readonly #known: ReceiverKnows;
  readonly #resources = new Map<string, Variants<Resource>>();
  readonly #snapshots = new Map<string, Snapshot>();
  #chosen: Omit<GroupSnapshots, 'group'> | undefined;
  #joiner: DocumentJoiner | undefined;
  readonly #receive: { readonly [Of in List]: (item: Items[Of]) => void } = {
    problems: (problem) => this.problems.push(problem),
    advice: (problem) => this.advice.push(problem),
    resources: (each) => {
      // After the transfer their bytes are no longer buffers.
      for (const resource of new Set(variants.map((variant) => each[variant]))) {
        const { buffer, byteOffset, length } = resource.any;
        Object.assign(resource, { any: Buffer.from(buffer as ArrayBuffer, byteOffset, length) });
      }
      this.#resources.set(each.standard.name, each);
    },
    leftOut: ([domain, fields]) =>
      this.leftOut.set(domain, [...(this.leftOut.get(domain) ?? []), ...fields]),
    chosen: ({ domains: numbers, versions }) => {
      const domains = numbers.map((number) => this.#domains[number] ?? '');
      const toSnapshot = (variant: Variant) =>
        this.#toSnapshot(domains, variant, versions[variant]);
      this.#chosen = { domains, ...toVariants(toSnapshot) };
    },
    groups: (group) => {
      if (this.#chosen === undefined) throw new Error('a piece of a group is missing');
      this.groups.push(Object.freeze({ group, ...this.#chosen }));
    },
    documents: (piece) => this.#receiveDocument(piece),
  };

  constructor(domains: readonly string[], known: ReceiverKnows) {
    this.#domains = domains;
    this.#known = known;
  }

  add<Of extends List>({ list, items }: Piece<Of>): void {
    items.forEach(this.#receive[list]);
  }

  endDocument(): void {
    if (this.#joiner !== undefined) this.documents.push(this.#joiner.toDocument());
    this.#joiner = undefined;
  }

  #toSnapshot(domains: readonly string[], variant: Variant, version: string): Snapshot {
    const same = this.#snapshots.get(version) ?? this.#known.findSnapshot(version);
    const snapshot = same ?? { version, resources: this.#choose(domains, variant) };
    this.#snapshots.set(version, snapshot);
    return snapshot;
  }

  #choose(domains: readonly string[], variant: Variant): Snapshot['resources'] {
    const chosen = domains.flatMap((domain) => this.#resources.get(domain)?.[variant] ?? []);
    return new Map(chosen.map((resource) => [resource.name, resource]));
  }

  #receiveDocument(piece: Items['documents']): void {
    if (typeof piece === 'string') {
      this.endDocument();
      const known = this.#known.documents.get(piece);
      if (known === undefined) throw new Error('a known document is missing');
      this.documents.push(known);
      return;
    }
    if (piece.head !== undefined) {
      this.endDocument();
      this.#joiner = createDocumentJoiner();
    }
    this.#joiner?.receive(piece);
  }
}

/** The document reduced to the rules of this name, which is all that their history needs: on its top level, without the
 * rules below them; without any rule for
 * ''. A name has the domain and the levels: `domain.key`, `domain.key_value`, `domain.key.key_value`. */
export function withRulesOf(document: RuleDocument, name: string): RuleDocument {
  const start = `${document.domain}.`;
  const found = name.startsWith(start)
    ? findBelow(document.descriptors, name.slice(start.length))
    : [];
  return { ...document, descriptors: found.map((each) => ({ ...each, descriptors: [] })) };
}

function findBelow(descriptors: readonly RuleDescriptor[], name: string): RuleDescriptor[] {
  return descriptors.flatMap((descriptor) => {
    const composite = toCompositeKey(descriptor.key, descriptor.value);
    if (name === composite) return descriptor;
    return name.startsWith(`${composite}.`)
      ? findBelow(descriptor.descriptors, name.slice(composite.length + 1))
      : [];
  });
}
