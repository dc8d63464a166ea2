// Finds what changes for requests from one revision to another; in the thread if there are many rules. The lookups of both
// sides and the changes take several times the memory of the rules, and on the main thread V8 would collect them in one
// pause. The thread returns the changes as JSON in bytes.
import { setImmediate } from 'node:timers/promises';
import { runAtOnce, runInSlices } from '../../../shared/in-slices.ts';
import { HttpError } from '../../../shared/router/index.ts';
import { groupInSteps } from '../../../shared/rules/file-order.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import {
  type JobThread,
  type Next,
  type Steps,
  TooMuch,
} from '../../../shared/thread/job-thread.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import { checkRules } from '../../authoring/checked-rules.ts';
import { type ComparedRules, comparing, type RuleChange } from '../../authoring/rule-change.ts';
import type { BuiltSnapshots } from '../snapshot/build.ts';
import { comparingForNodes, comparingGroups } from '../snapshot/node-change.ts';
import { WrittenJson } from '../store/json-in-slices.ts';
import type { WorkHead } from '../work-thread.ts';
import { unlessBusy } from './examination.ts';
import { type RuleChangeJson, toRuleChangeJson } from './rule-change-json.ts';

type Side = 'before' | 'after';
type Sides<Item> = Readonly<Record<Side, Item>>;
interface Question {
  /** Wall time that decides which rules have ended. */
  readonly nowMs: number;
}
type Piece =
  /** The pieces of a document of this side follow. */
  | { readonly side: Side }
  | { readonly ends: 'domain' }
  /** The changes of node groups, after all domains. */
  | { readonly ofGroups: readonly RuleChangeJson[] }
  | DocumentPiece;

/** The most rules of changed domains, of both sides, that are compared on the main thread. */
const fewRules = 100;
/** The same as the largest file, in characters: its rules may take as long. */
const size = 4 * 1024 * 1024;
const subject = 'the comparison';
/** Of JSON, in one message. */
const charactersAtOnce = 64 * 1024;

/** The list of all changes. Rejects with an HttpError: 429 if too many jobs are waiting, 409 if the comparison takes too
 * much time or memory. */
export async function findChanges(
  thread: JobThread,
  sides: Sides<BuiltSnapshots>,
  { nowMs, signal }: Question & { readonly signal: AbortSignal },
): Promise<readonly RuleChangeJson[] | WrittenJson> {
  const { before, after } = sides;
  const changed = await runInSlices(findingChangedDomains(sides));
  if (areFew(sides, changed)) {
    return runInSlices(comparingForNodes(before, after, toRuleChangeJson));
  }
  const groups = await runInSlices(comparingGroups(before, after));
  const domains = { before: await group(before, changed), after: await group(after, changed) };
  const send = toPieces({ nowMs }, changed, domains, groups.map(toRuleChangeJson));
  const job = { subject, size, signal, send, receive };
  try {
    return await unlessBusy(thread.run(job));
  } catch (error) {
    if (!(error instanceof TooMuch)) throw error;
    throw new HttpError(409, {
      detail: `${error.message}: compare the files with the command diff`,
    });
  }
}

/** Sorted by name. */
function* findingChangedDomains({
  before,
  after,
}: Sides<BuiltSnapshots>): Generator<void, string[]> {
  const changed: string[] = [];
  const added = after.domains.filter((domain) => !before.ruleSet.domains.has(domain));
  yield;
  for (const domain of [...before.domains, ...added].sort()) {
    if (before.ruleSet.domains.get(domain) !== after.ruleSet.domains.get(domain)) {
      changed.push(domain);
    }
  }
  return changed;
}

function areFew(sides: Sides<BuiltSnapshots>, domains: readonly string[]): boolean {
  let rules = 0;
  for (const domain of domains) {
    for (const { ruleSet } of [sides.before, sides.after]) {
      for (const _ of ruleSet.domains.get(domain)?.named() ?? []) {
        if (++rules > fewRules) return false;
      }
    }
  }
  return true;
}

async function group({ documents }: BuiltSnapshots, domains: readonly string[]) {
  const wanted = new Set(domains);
  return runInSlices(groupInSteps(documents.filter(({ domain }) => wanted.has(domain))));
}

function* toPieces(
  question: Question,
  domains: readonly string[],
  sides: Sides<ReadonlyMap<string, readonly RuleDocument[]>>,
  ofGroups: readonly RuleChangeJson[],
): Generator<object, void> {
  yield { work: 'diff' } satisfies WorkHead;
  yield question;
  for (const domain of domains) {
    for (const side of ['before', 'after'] as const) {
      for (const document of sides[side].get(domain) ?? []) {
        yield { side } satisfies Piece;
        yield* toDocumentPieces(document);
      }
    }
    yield { ends: 'domain' } satisfies Piece;
  }
  yield { ofGroups } satisfies Piece;
}

function* receive(next: Next): Steps<WrittenJson> {
  const parts: Uint8Array[] = [];
  for (let part = next(); part !== undefined; part = next()) {
    parts.push(part as Uint8Array);
    yield;
  }
  return new WrittenJson(parts);
}

export const doDiffJob: DoJob = async (next, send, check) => {
  const { nowMs } = next() as Question;
  const changes = new WrittenList(send);
  const compare = (joiners: Sides<DocumentJoiner[]>) => {
    const before = toCompared(joiners.before, nowMs);
    const after = toCompared(joiners.after, nowMs);
    check();
    const toItem = (change: RuleChange) => changes.add(toRuleChangeJson(change));
    runAtOnce(comparing(before, after, toItem), check);
  };
  let joiners: Sides<DocumentJoiner[]> = { before: [], after: [] };
  let joiner: DocumentJoiner | undefined;
  for (let piece = next() as Piece | undefined; piece; piece = next() as Piece | undefined) {
    if ('side' in piece) {
      joiner = createDocumentJoiner();
      joiners[piece.side].push(joiner);
    } else if ('ends' in piece) {
      const whole = joiners;
      joiners = { before: [], after: [] };
      joiner = undefined;
      compare(whole);
      // The target of a WeakRef, here the lookups of the domain, stays alive until the turn ends.
      await setImmediate();
    } else if ('ofGroups' in piece) for (const change of piece.ofGroups) changes.add(change);
    else joiner?.take(piece);
  }
  changes.end();
};

/** Writes a list as JSON, and sends it in bytes. */
class WrittenList {
  readonly #send: (part: Uint8Array) => void;
  readonly #encoder = new TextEncoder();
  #text = '[';
  #mark = '';

  constructor(send: (part: Uint8Array) => void) {
    this.#send = send;
  }

  add(item: RuleChangeJson): void {
    this.#text += this.#mark + JSON.stringify(item);
    this.#mark = ',';
    if (this.#text.length >= charactersAtOnce) this.#flush();
  }

  end(): void {
    this.#text += ']';
    this.#flush();
  }

  #flush(): void {
    this.#send(this.#encoder.encode(this.#text));
    this.#text = '';
  }
}

function toCompared(joiners: readonly DocumentJoiner[], nowMs: number): ComparedRules {
  const documents = joiners.map((each) => each.toDocument());
  // They were already checked on the main thread.
  const checked = checkRules(documents, { mergeDomains: true }, nowMs);
  if (!checked.ok) throw new Error(checked.problems[0]?.message);
  return { ruleSet: checked.rules, documents };
}
