// The snapshots in force, made from the revisions of a store: a complete revision or nothing, and the last good one
// while the newest is invalid. serving-state.ts decides what is served and what to do; this module performs it, and
// control-plane/server/rollout decides who gets a new revision first.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { runAtOnce, runInSlices } from '../../../shared/in-slices.ts';
import type { Log } from '../../../shared/log.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import type { CheckedRules } from '../../authoring/checked-rules.ts';
import { type Revision, toShortId } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import { EffectQueue } from '../turn.ts';
import { judging, type RevisionMemory } from './admission.ts';
import type { BuildOutcome, BuiltSnapshots } from './build.ts';
import { type Building, type Built, isLarge } from './building.ts';
import {
  LastGood,
  readNewest,
  readStored,
  type StoredRevision,
  UnfinishedExamination,
} from './last-good.ts';
import { findingLostRules, type LostRules } from './lost-rules.ts';
import type { AttributedStep } from './makers.ts';
import { PolicySteps, toSteps } from './policy-steps.ts';
import { compareFor, currentOf, groupOf, holdsOther } from './served.ts';
import {
  beforeOf,
  contentOfStep,
  type Facts,
  needsWay,
  type ServingEffect,
  type ServingEvent,
  type ServingState,
  startServing,
  step,
  toCandidate,
  toCircumstances,
  toWay,
} from './serving-state.ts';
import type { NodeIdentity, SnapshotProvider } from './snapshot.ts';
import { type SnapshotState, toSnapshotState } from './snapshot-state.ts';

export interface SnapshotCacheDeps {
  readonly store: ConfigStore;
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  readonly memory: () => RevisionMemory;
  /** The folder of the files in their repository, such as `rules/`; undefined at its root. */
  readonly repositoryFolder?: string;
  readonly building: Pick<Building, 'build' | 'close'>;
  /** This control plane's own directory for the last good revision. Created if missing. */
  readonly stateDirectory: string;
  readonly log: Log;
  readonly clock: Clock;
}

interface FoundLost {
  readonly of: readonly (BuiltSnapshots | undefined)[];
  /** Undefined until they are found. */
  found?: ReadonlyMap<string, LostRules>;
}

export class SnapshotCache implements SnapshotProvider {
  readonly #deps: SnapshotCacheDeps;
  readonly #lastGood: LastGood;
  readonly #unfinished: UnfinishedExamination;
  readonly #policySteps: PolicySteps;
  #state: ServingState;
  readonly #effects = new EffectQueue<ServingEffect>();
  /** Builds of large revisions under way, by id. */
  readonly #building = new Map<string, Promise<BuildOutcome>>();
  /** The rules that the revision on trial removes, compared with the one in force. */
  #lost: FoundLost | undefined;
  /** Builds and judgements in slices that are under way. */
  #last: Promise<void> | undefined;
  #isClosed = false;
  readonly #listeners = { refresh: new Set<() => void>(), newest: new Set<() => void>() };
  #stopWatching = () => {};

  constructor(deps: SnapshotCacheDeps) {
    const { store, stateDirectory, allowsRemoval, repositoryFolder = '', log } = deps;
    this.#deps = deps;
    this.#lastGood = new LastGood({ stateDirectory, store: store.description, log });
    this.#unfinished = new UnfinishedExamination(stateDirectory);
    this.#policySteps = new PolicySteps(deps);
    const knowsMakers = store.between !== undefined;
    this.#state = startServing({
      ...{ allowsRemoval, knowsMakers, folder: repositoryFolder },
      store: store.description,
    });
  }

  /** Resolves when the store's newest revision has been examined, valid or not: then it is in force or on trial, or the
   * revision before it is in force, or none is (`current` returns undefined, so that workers retain what they have).
   * From then on the store is followed. Never rejects for problems of the store or its files; `state` and the log have
   * them. */
  async start(): Promise<void> {
    const { store, memory, building, log } = this.#deps;
    const [{ revision, problem }] = await Promise.all([
      readNewest(this.#deps),
      this.#unfinished.read(),
    ]);
    const build = async (each: Revision) => (await building.build(each)).outcome;
    const own = { lastGood: this.#lastGood, store, build, log };
    const stored = await readStored({ ...own, memory: memory() });
    if (stored?.outcome?.ok) {
      const before = { revision: stored.revision, built: stored.outcome.built };
      this.happen({ kind: 'started', before });
    }
    // A revision still on trial continues its trial, and one that takes long to examine follows what the workers have.
    if (revision && stored?.revision && stored.revision.id !== revision.id) {
      const id = toShortId(revision.id);
      if (memory().rollsOut) this.#restore(stored, `Revision ${id} was not in force yet`);
      else if (stored.outcome.ok && isLarge(revision)) {
        this.#restore(stored, `Revision ${id} is still examined`);
      }
    }
    if (revision !== undefined) this.happen({ kind: 'found', revision });
    const isAwaited = this.#state.inForce === undefined || !(revision && isLarge(revision));
    if (isAwaited) await this.#settled();
    const { inForce, trial } = this.#state;
    if (inForce === undefined && trial === undefined) {
      this.#restore(stored, memory().otherVersion ?? problem);
    }
    this.happen({ kind: 'started', before: undefined });
    this.#stopWatching = store.watch((each) => this.happen({ kind: 'found', revision: each }));
  }

  current(node: NodeIdentity) {
    return currentOf(this.#state, node);
  }

  /** The name of a node's group; undefined while nothing is served to it. */
  groupOf(node: NodeIdentity) {
    return groupOf(this.#state, node);
  }

  /** The snapshots of a node without and with the trial; undefined when nothing is on trial. */
  compare(node: NodeIdentity) {
    return compareFor(this.#state, node);
  }

  /** Whether the node has other rules than those that are served for lack of anything known. */
  holdsOther(node: NodeIdentity): boolean {
    return holdsOther(this.#state, node);
  }

  /** The rules that the revision on trial removes from domains; undefined until they are found. */
  lostRules(): ReadonlyMap<string, LostRules> | undefined {
    const { inForce, trial } = this.#state;
    const of = [inForce?.built, trial?.built];
    const [before, after] = of;
    if (this.#lost?.of[0] === before && this.#lost?.of[1] === after) return this.#lost?.found;
    const lost: FoundLost = { of };
    this.#lost = lost;
    if (before === undefined || after === undefined || trial === undefined) lost.found = new Map();
    else {
      const finding = findingLostRules(before.ruleSet, after.ruleSet);
      if (!isLarge(trial.revision)) lost.found = runAtOnce(finding);
      else {
        void runInSlices(finding).then((found) => {
          lost.found = found;
        });
      }
    }
    return lost.found;
  }

  /** Calls `listener` after `current` has changed for any node. The returned function unsubscribes. */
  onChange(listener: () => void): () => void {
    return subscribe(this.#listeners.refresh, listener);
  }

  /** Calls `listener` each time a revision of the store has become the newest one, even if no node gets anything
   * different. The returned function unsubscribes. */
  onNewest(listener: () => void): () => void {
    return subscribe(this.#listeners.newest, listener);
  }

  state(): SnapshotState {
    return toSnapshotState(this.#state, this.#deps.store.status());
  }

  /** The rules, to explain decisions; undefined while nothing is in force. */
  get ruleSet(): CheckedRules | undefined {
    return this.governed?.ruleSet;
  }

  /** The documents of the rules in force; the same array while the rules stay in force. Empty if no rules are in
   * force. */
  get documents(): readonly RuleDocument[] {
    return this.governed?.documents ?? [];
  }

  /** The rules in force with their policy; undefined while nothing is in force. */
  get governed(): BuiltSnapshots | undefined {
    return this.#state.inForce?.built;
  }

  /** Whether all workers had this content before, if remembered. */
  wasServed(content: string): boolean {
    return this.#deps.memory().wasServed(content);
  }

  /** The steps from the revision in force to another one, each with its makers; empty if the revisions are the same.
   * `built`: undefined if the revision has errors. */
  async stepsTo(
    revision: Revision,
    built: BuiltSnapshots | undefined,
  ): Promise<readonly AttributedStep[]> {
    const before = beforeOf(this.#state);
    if (before === undefined || before.revision.id === revision.id) return [];
    const steps = await this.#policySteps.find(before, revision, built);
    return toSteps(steps, revision.id, this.#deps.memory());
  }

  /** The content of a revision that an operator can approve by its id: the newest one, or one that was refused together
   * with the newest. */
  contentOfStep(id: string): string | undefined {
    return contentOfStep(this.#state, id);
  }

  /** Resolves when the revision in force is saved on disk. Idempotent; the store stays open. */
  async close(): Promise<void> {
    this.#stopWatching();
    this.#isClosed = true;
    await this.#deps.building.close();
    await this.#unfinished.settled();
    await this.#lastGood.settled();
  }

  happen(event: ServingEvent): void {
    const { state, effects } = step(this.#state, event, this.#facts());
    this.#state = state;
    if (state.trial === undefined) this.#lost = undefined;
    this.#effects.perform(effects, (each) => this.#perform(each));
  }

  #facts(): Facts {
    const { memory, clock } = this.#deps;
    return { memory: memory(), wallMs: clock.wallMs() };
  }

  #perform(effect: ServingEffect): void {
    switch (effect.kind) {
      case 'build': {
        const { purpose, revision } = effect;
        this.#await(revision, this.#build(revision), (outcome) => {
          this.happen({ kind: 'built', purpose, revision, outcome });
        });
        break;
      }
      case 'judge':
        this.#await(effect.revision, this.#judge(effect), (judged) => this.happen(judged));
        break;
      case 'refresh':
      case 'newest':
        for (const listener of [...this.#listeners[effect.kind]]) listener();
        break;
      case 'keep':
        this.#lastGood.store(effect.revision);
        break;
      case 'log':
        this.#deps.log[effect.level](effect.text, effect.detail);
    }
  }

  /** Calls `use` at once if the result is not a promise. */
  #await<Result>(
    { id }: Revision,
    result: Result | Promise<Result>,
    use: (result: Result) => void,
  ): void {
    if (!(result instanceof Promise)) {
      use(result);
      return;
    }
    this.#last = result
      .then((found) => (this.#isClosed ? undefined : use(found)))
      .catch((error: unknown) => {
        this.#deps.log.error(`Revision ${id} is not examined: ${errorText(error)}`);
      });
  }

  /** Resolves when no build or judgement is under way. */
  async #settled(): Promise<void> {
    for (let last = this.#last; last !== undefined; ) {
      await last;
      last = last === this.#last ? undefined : this.#last;
    }
  }

  async #judge({
    revision,
    outcome,
  }: Extract<ServingEffect, { kind: 'judge' }>): Promise<ServingEvent> {
    const { turns } = this.#state;
    const before = beforeOf(this.#state);
    const isAsked = outcome.ok && before && needsWay(this.#state, revision, outcome);
    const found = isAsked ? await this.#policySteps.find(before, revision, outcome.built) : [];
    const facts = this.#facts();
    const state = this.#state;
    const candidate = toCandidate(state, revision, outcome, facts);
    const way = toWay(revision, found, facts);
    const given = toCircumstances(state, toSteps(found, revision.id, facts.memory), facts);
    const admission = await runInSlices(judging(candidate, given));
    return { kind: 'judged', candidate, admission, way, turns };
  }

  #build(revision: Revision): BuildOutcome | Promise<BuildOutcome> {
    const { building } = this.#deps;
    const { id } = revision;
    const toOutcome = ({ outcome }: Built) => outcome;
    if (!isLarge(revision)) {
      const built = building.build(revision);
      return built instanceof Promise ? built.then(toOutcome) : toOutcome(built);
    }
    const begun = this.#building.get(id);
    if (begun !== undefined) return begun;
    const outcome = this.#unfinished
      .during(id, () => building.build(revision))
      .then(toOutcome)
      .finally(() => this.#building.delete(id));
    this.#building.set(id, outcome);
    return outcome;
  }

  /** `why`: the reason for serving an earlier revision. */
  #restore(stored: StoredRevision | undefined, why: string): void {
    const { log } = this.#deps;
    if (stored === undefined) {
      log.error(
        `${why}, and no earlier revision is stored: workers get no rules until there is one`,
      );
    } else if (stored.problem !== undefined) log.error(stored.problem);
    else {
      const { revision, outcome } = stored;
      this.happen({ kind: 'restored', revision, outcome, why });
    }
  }
}

function subscribe(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
