// Finds what changes for requests from one revision to another; in the thread if there are many rules. The lookups of both
// sides and the changes take several times the memory of the rules, and on the main thread V8 would collect them in one
// pause. The thread returns the changes as JSON in bytes.
import { runInSlices } from '../../../shared/in-slices.ts';
import { HttpError } from '../../../shared/router/index.ts';
import { groupInSteps } from '../../../shared/rules/file-order.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import {
  type JobThread,
  type Next,
  type Steps,
  TooMuch,
} from '../../../shared/thread/job-thread.ts';
import type { BuiltSnapshots } from '../snapshot/build.ts';
import { comparingForNodes, comparingGroups } from '../snapshot/node-change.ts';
import { WrittenJson } from '../store/json-in-slices.ts';
import type { WorkHead } from '../work-thread.ts';
import { unlessBusy } from './examination.ts';
import { type RuleChangeJson, toRuleChangeJson } from './rule-change-json.ts';

type Side = 'before' | 'after';
export type Sides<Item> = Readonly<Record<Side, Item>>;
export interface DiffQuestion {
  /** Wall time that decides which rules have ended. */
  readonly nowMs: number;
}
export type DiffPiece =
  /** The pieces of a document of this side follow. */
  | { readonly side: Side }
  | { readonly ends: 'domain' }
  /** The changes of node groups, after all domains. */
  | { readonly ofGroups: readonly RuleChangeJson[] }
  | DocumentPiece;

/** The most rules of changed domains, of both sides, that are compared on the main thread. */
const fewRules = 100;
/** As long as the largest file, in characters: its rules may take as much time. */
const size = 4 * 1024 * 1024;
const subject = 'the comparison';

type ComparedSnapshots = Pick<BuiltSnapshots, 'ruleSet' | 'documents' | 'domains' | 'groups'>;
export type FoundChanges = readonly RuleChangeJson[] | WrittenJson;

/** The list of all changes. Rejects with an HttpError: 429 if too many jobs are waiting, 409 if the comparison takes too
 * much time or memory. */
export async function findChanges(
  thread: JobThread,
  sides: Sides<ComparedSnapshots>,
  { nowMs, signal }: DiffQuestion & { readonly signal: AbortSignal },
): Promise<FoundChanges> {
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

/** The changes one by one: those that came in bytes are read in parts. */
export function* listChanges(changes: FoundChanges): Generator<RuleChangeJson, void> {
  if (!(changes instanceof WrittenJson)) return yield* changes;
  const decoder = new TextDecoder();
  // A part begins with the mark before its first change; the last one ends with that of the list.
  for (const part of changes.parts) {
    yield* JSON.parse(`[${decoder.decode(part).slice(1).replace(/\]$/, '')}]`);
  }
}

/** Sorted by name. */
function* findingChangedDomains({
  before,
  after,
}: Sides<ComparedSnapshots>): Generator<void, string[]> {
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

function areFew(sides: Sides<ComparedSnapshots>, domains: readonly string[]): boolean {
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

async function group({ documents }: ComparedSnapshots, domains: readonly string[]) {
  const wanted = new Set(domains);
  return runInSlices(groupInSteps(documents.filter(({ domain }) => wanted.has(domain))));
}

function* toPieces(
  question: DiffQuestion,
  domains: readonly string[],
  sides: Sides<ReadonlyMap<string, readonly RuleDocument[]>>,
  ofGroups: readonly RuleChangeJson[],
): Generator<object, void> {
  yield { work: 'diff' } satisfies WorkHead;
  yield question;
  for (const domain of domains) {
    for (const side of ['before', 'after'] as const) {
      for (const document of sides[side].get(domain) ?? []) {
        yield { side } satisfies DiffPiece;
        yield* toDocumentPieces(document);
      }
    }
    yield { ends: 'domain' } satisfies DiffPiece;
  }
  yield { ofGroups } satisfies DiffPiece;
}

function* receive(next: Next): Steps<WrittenJson> {
  const parts: Uint8Array[] = [];
  for (let part = next(); part !== undefined; part = next()) {
    parts.push(part as Uint8Array);
    yield;
  }
  return new WrittenJson(parts);
}
