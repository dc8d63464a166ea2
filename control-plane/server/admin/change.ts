// Takes a change of the configuration from its plan to its revision: no change is written if it adds errors, or was
// planned for another state of the files.
import { toCountText } from '../../../shared/count-text.ts';
import { AppError } from '../../../shared/errors.ts';
import { ownTurn, runInSlices } from '../../../shared/in-slices.ts';
import { HttpError } from '../../../shared/router/index.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import type { BuiltSnapshots } from '../snapshot/build.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { findingRemoval } from '../snapshot/large-removal.ts';
import { type AttributedStep, findingChanged } from '../snapshot/makers.ts';
import { judgingByPolicy } from '../snapshot/policy-guard.ts';
import { applyChange, existingPaths } from '../store/file-change.ts';
import { toJsonDigest } from '../store/json-digest.ts';
import type { Revision } from '../store/revision.ts';
import {
  againTrailer,
  allowRemovalTrailer,
  nowTrailer,
  stepsTrailer,
  supersedeTrailer,
  withTrailer,
} from '../store/revision.ts';
import type { Author, Change, ConfigStore } from '../store/store.ts';
import { busy, type ChangeTurns } from './change-turns.ts';
import { addedErrors, type Examination, type Examine } from './examination.ts';
import { toPrefixHint } from './revision-json.ts';

/** The rules would have these errors: status 422. */
export class InvalidRules extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(`the rules would have ${toCountText(problems.length, 'error')}`);
    this.name = 'InvalidRules';
    this.problems = problems;
  }
}

export interface ChangeRequest {
  /** Returns the change to these files; throws an HttpError or InvalidRules if it is impossible. Called again if others
   * have changed something meanwhile. */
  plan(current: Revision, examination: Examination): Change | Promise<Change>;
  /** Whether existing errors are allowed, so that one of two broken files can be repaired; not set for a change of all
   * files at once. */
  readonly toleratesOldErrors: boolean;
  /** The revision that the author started from. */
  readonly expectedRevision: string | undefined;
  /** Whether the change may remove most limits. */
  readonly allowsRemoval: boolean;
  /** How the revision is rolled out if rollouts are configured: to all workers at once, in steps although it is an
   * undo, in place of a revision whose rollout is running, or again after it was taken back. */
  readonly rollout?: 'now' | 'steps' | 'supersede' | 'again' | undefined;
  readonly author: Author;
  readonly message: string;
}

export interface ChangeDeps {
  readonly store: ConfigStore;
  readonly snapshots: Pick<SnapshotCache, 'governed' | 'wasServed' | 'stepsTo'>;
  readonly examine: Examine;
  readonly turns: ChangeTurns;
  /** Whether any change may remove most limits. */
  readonly allowsRemoval: boolean;
}

export interface MadeChange {
  readonly before: Revision;
  readonly after: Revision;
  readonly warnings: readonly Problem[];
  readonly documentsBefore: readonly RuleDocument[];
  readonly documentsAfter: readonly RuleDocument[];
}

/** The current files, and the files after the change. */
export interface PlannedChange {
  readonly before: Revision;
  readonly change: Change;
  readonly after: Pick<Revision, 'files' | 'problems'>;
  readonly known: Examination;
  readonly examined: Examination;
}

const maxAttempts = 3;

type PlanDeps = Omit<ChangeDeps, 'turns'>;

/** Writes nothing. Rejects for the same reasons as `makeChange`. */
async function planChange(deps: PlanDeps, request: ChangeRequest): Promise<PlannedChange> {
  const { store } = deps;
  const before = await store.read();
  const status = store.status();
  if (!status.reachable) {
    const detail = `the store cannot be reached, so nothing can be written: ${status.lastError}`;
    throw new AppError('store', detail);
  }
  return planChangeOf(before, deps, request);
}

/** Plans the change of a known revision, whether or not the store can be reached. Everything that can refuse the change
 * is checked here, before any action. */
export async function planChangeOf(
  before: Revision,
  deps: PlanDeps,
  request: ChangeRequest,
): Promise<PlannedChange> {
  const { expectedRevision } = request;
  if (expectedRevision !== undefined && !(await isExpected(deps.store, expectedRevision, before))) {
    const detail = `the newest revision is ${before.id}, not ${expectedRevision}${toPrefixHint(expectedRevision)}`;
    throw new HttpError(412, { detail });
  }
  const { refused, ...planned } = await judgeChange(before, deps, request);
  if (refused.length > 0) throw new InvalidRules(refused);
  const obstacles = await deps.store.findObstacles(planned.change, before);
  if (obstacles.length > 0) throw new InvalidRules(obstacles);
  return planned;
}

/** `refused`: why the change cannot be written; empty if rules and policy allow it. */
export async function judgeChange(
  before: Revision,
  { examine, snapshots, allowsRemoval }: Pick<PlanDeps, 'examine' | 'snapshots' | 'allowsRemoval'>,
  request: Omit<ChangeRequest, 'expectedRevision'>,
): Promise<PlannedChange & { readonly refused: readonly Problem[] }> {
  const known = await examine(before);
  const change = await request.plan(before, known);
  await ownTurn();
  const after = applyChange(before, change);
  const examined = await examine(after);
  const { problems, governed } = examined;
  const added = addedErrors(request.toleratesOldErrors ? known.problems : [], problems);
  const served = snapshots.governed;
  const isGuarded = !request.allowsRemoval && !allowsRemoval;
  const removal =
    isGuarded && governed && served
      ? await runInSlices(findingRemoval(served, governed, snapshots.wasServed(governed.content)))
      : undefined;
  const refused = added.length > 0 || removal === undefined ? added : [removal];
  const info = { author: request.author.name, message: toMessage(request) };
  const broken = await refusedByPolicy({ snapshots }, { before, known, examined }, info);
  return { before, change, after, known, examined, refused: [...refused, ...broken] };
}

/** Rejects with an HttpError (400, 409, 412), InvalidRules, or the store's error. */
export function makeChange(deps: ChangeDeps, request: ChangeRequest): Promise<MadeChange> {
  return deps.turns.queue(() => makeInTurn(deps, request));
}

async function makeInTurn(deps: PlanDeps, request: ChangeRequest): Promise<MadeChange> {
  const { store } = deps;
  const { author } = request;
  const message = toMessage(request);
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { before, change, known, examined } = await planChange(deps, request);
    const result = await store.write(change, {
      // The files that the plan was made for, whatever revision its author started from.
      expectedRevision: before.id,
      author,
      message,
    });
    if (result.ok) {
      return {
        before,
        after: result.revision,
        warnings: examined.problems,
        documentsBefore: known.documents,
        documentsAfter: examined.documents,
      };
    }
    if (result.reason === 'refused') throw new InvalidRules(result.problems);
    if (result.reason === 'busy') break;
  }
  throw busy();
}

/** The problems for which the policy will refuse the revision; none if the revision has errors. */
async function refusedByPolicy(
  { snapshots }: Pick<PlanDeps, 'snapshots'>,
  { before, known, examined }: Pick<PlannedChange, 'before' | 'known' | 'examined'>,
  info: { readonly author: string; readonly message: string },
): Promise<readonly Problem[]> {
  const { governed, content } = examined;
  if (governed === undefined || content === undefined) return [];
  const steps = await toSteps({ snapshots }, { before, known }, governed, info);
  const isUndo = snapshots.wasServed(content);
  const judged = judgingByPolicy(snapshots.governed, governed, { steps, isUndo });
  return (await runInSlices(judged)).refused;
}

/** Changes by others that are not yet in force would come into force together with this one. */
async function toSteps(
  { snapshots }: Pick<PlanDeps, 'snapshots'>,
  { before, known }: Pick<PlannedChange, 'before' | 'known'>,
  governed: BuiltSnapshots,
  info: { readonly author: string; readonly message: string },
): Promise<readonly AttributedStep[]> {
  const others = await snapshots.stepsTo(before, known.governed);
  if (others.length === 0 || known.governed === undefined) {
    return [{ makers: [...others.flatMap(({ makers }) => makers), info], changed: undefined }];
  }
  const { policy } = governed;
  const own = findingChanged(known.governed, governed, policy);
  return [...others, { makers: [info], changed: await runInSlices(own) }];
}

/** The author's message travels with the change. */
function toMessage({
  message,
  allowsRemoval,
  rollout,
}: Pick<ChangeRequest, 'message' | 'allowsRemoval' | 'rollout'>): string {
  const trailers = [
    allowsRemoval ? allowRemovalTrailer : undefined,
    rollout === 'now' ? nowTrailer : undefined,
    rollout === 'steps' ? stepsTrailer : undefined,
    rollout === 'supersede' ? supersedeTrailer : undefined,
    rollout === 'again' ? againTrailer : undefined,
  ];
  return trailers.reduce(
    (text, trailer) => (trailer === undefined ? text : withTrailer(text, trailer)),
    message,
  );
}

/** Whether the current revision has the content that the author started from. In Git, commits outside the folder are
 * revisions with the same content, which the author can ignore. */
async function isExpected(store: ConfigStore, expected: string, current: Revision) {
  if (expected === current.id) return true;
  const revision = await store.readRevision(expected);
  return revision !== undefined && (await contentOf(revision)) === (await contentOf(current));
}

function contentOf({ files, problems }: Revision): Promise<string> {
  return toJsonDigest([files, problems]);
}

/** A text in the format of the store: a byte order mark is not part of it. */
export function toFileText(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** The change that makes `current` have exactly these files; unreadable files are deleted too. */
export function toReplacement(
  current: Pick<Revision, 'files' | 'problems'>,
  wanted: readonly { readonly path: string; readonly text: string }[],
): Change {
  const before = new Map(current.files.map(({ path, text }) => [path, text]));
  const after = new Set(wanted.map(({ path }) => path));
  return {
    put: wanted.filter(({ path, text }) => before.get(path) !== text),
    delete: [...existingPaths(current)].filter((path) => !after.has(path)),
  };
}
