// The steps from the revision in force to another one, for the policy: each change is judged by its own maker, even if
// later revisions by other authors build on it (behaviour: judged-by-maker). At most two revisions are in memory at a
// time, whatever their number.
import { errorText } from '../../../shared/errors.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import type { Log } from '../../../shared/log.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { ConfigStore, Lineage } from '../store/store.ts';
import type { RevisionMemory } from './admission.ts';
import type { BuiltSnapshots } from './build.ts';
import type { Building } from './building.ts';
import { type AttributedStep, findingChanged, type Maker } from './makers.ts';
import type { InForce } from './served.ts';

export interface PolicyStepsDeps {
  readonly store: Pick<ConfigStore, 'between' | 'readRevision'>;
  readonly building: Pick<Building, 'build'>;
  readonly log: Log;
}

type From = Pick<InForce, 'revision' | 'built'>;

/** A maker, before it is known whether an operator has approved the revision. */
export interface KnownMaker extends Pick<Maker, 'author' | 'message'> {
  /** Undefined for an unknown maker. */
  readonly revision: string | undefined;
  /** Undefined if the revision has errors. */
  readonly content: string | undefined;
}

export interface KnownStep extends Pick<AttributedStep, 'changed'> {
  readonly makers: readonly KnownMaker[];
}

/** The steps found so far, from which the next search continues. */
interface Progress {
  readonly from: BuiltSnapshots;
  readonly policyText: string | undefined;
  readonly ids: readonly string[];
  readonly steps: readonly KnownStep[];
  readonly last: BuiltSnapshots;
  /** Makers of revisions with errors after the last step. */
  readonly pending: readonly KnownMaker[];
}

/** Maximum number of remembered keys of changes; beyond it, steps are not distinguished. */
const maxKeys = 200_000;
const unknown: KnownMaker = {
  ...{ revision: undefined, author: undefined, message: undefined, content: undefined },
};

export class PolicySteps {
  readonly #deps: PolicyStepsDeps;
  #known: Progress | undefined;

  constructor(deps: PolicyStepsDeps) {
    this.#deps = deps;
  }

  /** Finds the steps, the last of which ends with the revision itself. `built`: undefined if the revision has
   * errors. */
  async find(
    from: From,
    revision: Revision,
    built: BuiltSnapshots | undefined,
  ): Promise<readonly KnownStep[]> {
    const lineage = await this.#readLineage(from.revision.id, revision);
    const between = lineage.revisions.filter(({ id }) => id !== revision.id);
    if (built === undefined) {
      const known = [...between, revision].map((info) => ({
        ...toMaker(info),
        content: undefined,
      }));
      return [{ makers: lineage.isCut ? [unknown, ...known] : known, changed: undefined }];
    }
    let progress = this.#toStart(from.built, built, lineage);
    for (const info of between.slice(progress.ids.length))
      progress = await this.#extend(progress, info, built);
    this.#known = progress;
    const own: KnownMaker = { ...toMaker(revision), content: built.content };
    const makers = [...progress.pending, own];
    // A single step has made all changes.
    if (progress.steps.length === 0) return [{ makers, changed: undefined }];
    const { steps } = await this.#addStep(progress, makers, built, built);
    return steps;
  }

  /** If the lineage cannot be read, the makers are unknown. */
  async #readLineage(older: string, { id }: Revision): Promise<Lineage> {
    const { store, log } = this.#deps;
    if (store.between === undefined) return { revisions: [], isCut: false };
    try {
      return await store.between(older, id);
    } catch (error) {
      log.warning(
        `The authors of the changes in revision ${id} cannot be read: ${errorText(error)}`,
      );
      return { revisions: [], isCut: true };
    }
  }

  #toStart(from: BuiltSnapshots, { policyText }: BuiltSnapshots, lineage: Lineage): Progress {
    const known = this.#known;
    const goesOn =
      known?.from === from &&
      known.policyText === policyText &&
      !lineage.isCut &&
      known.ids.every((id, index) => lineage.revisions[index]?.id === id);
    if (goesOn) return known;
    const pending = lineage.isCut ? [unknown] : [];
    return { from, policyText, ids: [], steps: [], last: from, pending };
  }

  async #extend(
    progress: Progress,
    info: RevisionInfo,
    { policy }: BuiltSnapshots,
  ): Promise<Progress> {
    const { store, building } = this.#deps;
    const ids = [...progress.ids, info.id];
    // If the revision cannot be read, its own changes cannot be distinguished.
    const revision = await store.readRevision(info.id).catch(() => undefined);
    const isBroken = revision === undefined || revision.problems.some(isError);
    const outcome = isBroken ? undefined : (await building.build(revision)).outcome;
    if (!outcome?.ok) {
      return {
        ...progress,
        ids,
        pending: [...progress.pending, { ...toMaker(info), content: undefined }],
      };
    }
    const { built } = outcome;
    const makers = [...progress.pending, { ...toMaker(info), content: built.content }];
    return { ...(await this.#addStep(progress, makers, built, { policy })), ids };
  }

  async #addStep(
    progress: Progress,
    makers: readonly KnownMaker[],
    built: BuiltSnapshots,
    { policy }: Pick<BuiltSnapshots, 'policy'>,
  ): Promise<Progress> {
    const changed = await runInSlices(findingChanged(progress.last, built, policy));
    const steps = [...progress.steps, { makers, changed }];
    const keys = steps.reduce((sum, step) => sum + (step.changed?.size ?? 0), 0);
    const together = { makers: steps.flatMap((step) => step.makers), changed: undefined };
    return { ...progress, steps: keys > maxKeys ? [together] : steps, last: built, pending: [] };
  }
}

/** Adds the approvals known by now. `newest`: the revision whose approval also admits changes by makers whom the store
 * does not know. */
export function toSteps(
  steps: readonly KnownStep[],
  newest: string,
  memory: Pick<RevisionMemory, 'verdictOf'>,
): AttributedStep[] {
  return steps.map(({ makers, changed }) => ({
    changed,
    makers: makers.map(({ author, message, content, revision = newest }) => {
      const verdict = memory.verdictOf(revision, content ?? '');
      const isApproved = verdict?.outcome === 'approved' && verdict.revision === revision;
      return { author, message, revision, approvedBy: isApproved ? verdict.by : undefined };
    }),
  }));
}

function toMaker({ id, author, message }: RevisionInfo): Omit<KnownMaker, 'content'> {
  return { revision: id, author, message };
}
