// Checks files before they are served: with the same build as for workers, so that workers accept the files that pass
// here.

import { ownTurn } from '../../../shared/in-slices.ts';
import { HeldByKey } from '../../../shared/made-once.ts';
import { HttpError } from '../../../shared/router/index.ts';
import { isError, type Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { TooBusy } from '../../../shared/thread/job-thread.ts';
import type { CheckedRules } from '../../authoring/checked-rules.ts';
import { type BuiltSnapshots, listProblems } from '../snapshot/build.ts';
import type { Building } from '../snapshot/building.ts';
import type { Revision } from '../store/revision.ts';

export interface Examination {
  /** The readable documents. */
  readonly documents: readonly RuleDocument[];
  /** Undefined when there are errors. */
  readonly ruleSet: CheckedRules | undefined;
  /** Equal if every node receives the same rules; undefined when there are errors. */
  readonly content: string | undefined;
  readonly problems: readonly Problem[];
  /** The snapshots with the policy applied; undefined when there are errors. */
  readonly governed: BuiltSnapshots | undefined;
}

export type Examine = (files: Pick<Revision, 'files' | 'problems'>) => Promise<Examination>;

/** Parts of an examination. They reject with an HttpError 429 if too many examinations are running. */
export type Reading = Pick<Building, 'findProblems' | 'readDocument'>;

export function createReading(building: Reading): Reading {
  return {
    async findProblems(files) {
      await ownTurn();
      return unlessBusy(building.findProblems(files));
    },
    async readDocument(text, path, rulesOf) {
      await ownTurn();
      return unlessBusy(building.readDocument(text, path, rulesOf));
    },
  };
}

/** Caches the last revisions by identity. Rejects with an HttpError 429 if too many examinations are running. */
export function createExamine(building: Pick<Building, 'build'>): Examine {
  const known = new HeldByKey<object, Promise<Examination> | undefined>();
  return (revision) => {
    const before = known.get(revision);
    if (before !== undefined) return before;
    const examination = examine(building, revision);
    known.set(revision, examination);
    examination.catch(() => known.set(revision, undefined));
    return examination;
  };
}

async function examine(
  building: Pick<Building, 'build'>,
  revision: Pick<Revision, 'files' | 'problems'>,
): Promise<Examination> {
  await ownTurn();
  const { outcome, documents } = await unlessBusy(building.build(revision));
  return {
    documents,
    ruleSet: outcome.ok ? outcome.built.ruleSet : undefined,
    content: outcome.ok ? outcome.built.content : undefined,
    problems: listProblems(outcome),
    governed: outcome.ok ? outcome.built : undefined,
  };
}

/** Rejects with an HttpError 429 if too many jobs wait. */
export async function unlessBusy<Result>(work: Result | Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof TooBusy)) throw error;
    throw new HttpError(429, {
      detail: 'other large configurations are being examined; try again',
      headers: { 'retry-after': '10' },
    });
  }
}

/** Errors of `after` that `before` does not have. */
export function addedErrors(before: readonly Problem[], after: readonly Problem[]): Problem[] {
  const key = ({ file, path, message }: Problem) => JSON.stringify([file, path, message]);
  const known = new Set(before.filter(isError).map(key));
  return after.filter((problem) => isError(problem) && !known.has(key(problem)));
}
