// The snapshots in force, made from the revisions of a store: a whole revision or nothing, and the last good one while
// the newest is bad. Does what admission.ts judges of a new revision; served.ts has what every node gets,
// control-plane/rollout decides who gets a new revision first.

import type { Clock } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import type { Log } from '../../shared/log.ts';
import type { CheckedRules } from '../../shared/rules/checked-rules.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { Step } from '../policy/makers.ts';
import { inRepository, type Revision, toRevisionInfo, toShortId } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import {
  type Candidate,
  type Circumstances,
  findSaidBefore,
  isOutdated,
  type Judgement,
  judge,
  judging,
  mayRemove,
  type RevisionMemory,
  toTakenBack,
  wasInForce,
} from './admission.ts';
import type { BuildOutcome, BuiltSnapshots } from './build.ts';
import { type Building, type Built, isLarge } from './building.ts';
import { type Kept, LastGood, readKept, readNewest } from './last-good.ts';
import { type KnownStep, PolicySteps } from './policy-steps.ts';
import { RevisionLog } from './revision-log.ts';
import { type InForce, Served, type Serving } from './served.ts';
import type { NodeIdentity, SnapshotProvider } from './snapshot.ts';
import { type NewestRevision, type SnapshotState, toSnapshotState } from './snapshot-state.ts';
import { UnfinishedExamination } from './unfinished-examination.ts';

export interface SnapshotCacheDeps {
  readonly store: ConfigStore;
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  readonly memory: RevisionMemory;
  /** In which the files are, in their repository, such as `rules/`; undefined at its root. */
  readonly repositoryFolder?: string;
  readonly building: Pick<Building, 'build' | 'close'>;
  /** Directory of this control plane alone, for the last good revision. Created when missing. */
  readonly stateDirectory: string;
  readonly log: Log;
  readonly clock: Clock;
}

/** Revisions and contents that are remembered. */
const maxRemembered = 1_000;

export class SnapshotCache implements SnapshotProvider {
  readonly #deps: SnapshotCacheDeps;
  readonly #served = new Served();
  readonly #lastGood: LastGood;
  readonly #unfinished: UnfinishedExamination;
  readonly #say: RevisionLog;
  readonly #policySteps: PolicySteps;
  /** The last large one: it is judged again when something else is known of it. */
  #built:
    | { readonly id: string; readonly outcome: BuildOutcome | Promise<BuildOutcome> }
    | undefined;
  /** The newest revision of the store while it is examined; one that comes after it takes its place. */
  #examined: Revision | undefined;
  /** Grows with all that a judgement may depend on. */
  #turns = 0;
  #isClosed = false;
  /** Served by an earlier process; used until this one serves something. */
  #servedBefore: Circumstances['before'];
  #newest: NewestRevision | undefined;
  /** The newest one, while it is not known what was said of it. */
  #unexamined: Revision | undefined;
  #withdrawn: SnapshotState['withdrawn'];
  /** Who has made what of the newest revision, where a policy asks for it. */
  #way: { readonly steps: readonly KnownStep[]; readonly approvals: string } | undefined;
  /** Ids of revisions that have been the newest one, the oldest first. */
  readonly #seenIds = new Set<string>();
  /** Contents that this control plane has had in force, the oldest first. */
  readonly #servedContents = new Set<string>();
  readonly #counts = { accepted: 0, refused: 0, takenBack: 0 };
  readonly #newestListeners = new Set<() => void>();
  #stopWatching = () => {};

  constructor(deps: SnapshotCacheDeps) {
    const { store, stateDirectory, log } = deps;
    this.#deps = deps;
    this.#lastGood = new LastGood({ stateDirectory, store: store.description, log });
    this.#unfinished = new UnfinishedExamination(stateDirectory);
    this.#say = new RevisionLog(store.description, log);
    this.#policySteps = new PolicySteps(deps);
  }

  /**
   * Resolves when the store's newest revision has been examined, good or bad: then it is in force, or on trial,
   * or the revision before it is in force, or none is (`current` gives undefined, so that workers keep what they
   * have). From then on the store is followed. Never rejects for problems of the store or its files; `state` and
   * the log have them.
   */
  async start(): Promise<void> {
    const { store, memory, building, log } = this.#deps;
    const [{ revision, trouble }] = await Promise.all([
      readNewest(this.#deps),
      this.#unfinished.read(),
    ]);
    const build = async (each: Revision) => (await building.build(each)).outcome;
    const kept = await readKept({ lastGood: this.#lastGood, store, memory, build, log });
    if (kept?.outcome?.ok) {
      this.#servedBefore = { revision: kept.revision, built: kept.outcome.built };
    }
    // A revision that has not come through its trial goes on with it, and one that takes long to examine comes after what
    // workers have.
    if (revision && kept?.revision && kept.revision.id !== revision.id) {
      const id = toShortId(revision.id);
      if (memory.rollsOut) this.#restore(kept, `Revision ${id} was not in force yet`);
      else if (kept.outcome.ok && isLarge(revision)) {
        this.#restore(kept, `Revision ${id} is still examined`);
      }
    }
    const apply = (each: Revision) => void this.#apply(each);
    const examined = revision && this.#apply(revision);
    const isAwaited = this.#served.now.inForce === undefined || !(revision && isLarge(revision));
    if (isAwaited) await examined;
    const { inForce, trial } = this.#served.now;
    if (inForce === undefined && trial === undefined) {
      this.#restore(kept, memory.otherVersion ?? trouble);
    }
    this.#servedBefore = undefined;
    this.#stopWatching = store.watch(apply);
  }

  current(node: NodeIdentity) {
    return this.#served.current(node);
  }

  groupOf(node: NodeIdentity) {
    return this.#served.groupOf(node);
  }

  compare(node: NodeIdentity) {
    return this.#served.compare(node);
  }

  onChange(listener: () => void) {
    return this.#served.onChange(listener);
  }

  /** Each time when a revision of the store has become the newest one, also where no node gets anything else.
   * Returns the end of that. */
  onNewest(listener: () => void): () => void {
    this.#newestListeners.add(listener);
    return () => {
      this.#newestListeners.delete(listener);
    };
  }

  state(): SnapshotState {
    const { store, allowsRemoval } = this.#deps;
    return toSnapshotState({
      store: store.status(),
      newest: this.#newest,
      serving: this.#served.now,
      withdrawn: this.#withdrawn,
      counts: this.#counts,
      mayRemove: (revision) => mayRemove(revision, allowsRemoval),
    });
  }

  /** The rules, to explain decisions; undefined while nothing is in force. */
  get ruleSet(): CheckedRules | undefined {
    return this.#served.now.inForce?.built.ruleSet;
  }

  /** The documents of the rules in force; the same array as long as they are. Empty while there are none. */
  get documents(): readonly RuleDocument[] {
    return this.#served.now.inForce?.built.documents ?? [];
  }

  /** The rules in force with their policy; undefined while nothing is. */
  get governed(): BuiltSnapshots | undefined {
    return this.#served.now.inForce?.built;
  }

  /** Whether everybody had this content before, as far as that is remembered. */
  wasInForce(content: string): boolean {
    return wasInForce(content, { served: this.#servedContents, memory: this.#deps.memory });
  }

  /** Looks at the newest revision again where something else is known of it than before: it was approved or taken back,
   * it is held back, or the memory has been read. */
  reconsider(): void {
    this.#turns++;
    if (this.#unexamined !== undefined) {
      void this.#apply(this.#unexamined);
      return;
    }
    const newest = this.#newest;
    if (newest === undefined) return;
    const { steps = [], approvals = '' } = this.#way ?? {};
    const isOtherwiseApproved =
      newest.invalidSinceMs !== undefined && approvals !== this.#approvalsOf(newest.whole, steps);
    if (
      isOtherwiseApproved ||
      this.#isTriedAgain(newest) ||
      isOutdated(newest, this.#circumstances([]))
    ) {
      void this.#take(newest.whole);
    }
  }

  /** It was taken back, and an operator wants it all the same. */
  #isTriedAgain({ whole, content, problems }: NewestRevision): boolean {
    if (content === undefined || !problems.some(({ rule }) => rule === 'taken-back')) return false;
    return this.#deps.memory.verdictOf(whole.id, content)?.outcome === 'approved';
  }

  /** Another control plane has this revision on trial: so has this one from now on, with nobody until `offerTrial`,
   * unless it is invalid here. Large ones take their time. */
  followTrial(revision: Revision): void {
    void this.#whenBuilt(revision, (outcome) => {
      if (!outcome.ok || this.#served.now.trial?.whole.id === revision.id) return;
      this.#beginTrial(revision, outcome.built);
      // A verdict on an earlier try does not count where it is tried again.
      this.#letThrough(revision, outcome.warnings);
      const newest = this.#newest;
      if (newest && newest.whole.id !== revision.id && newest.invalidSinceMs === undefined) {
        const isWaiting = newest.whole.id !== this.#served.now.inForce?.revision.id;
        this.#newest = { ...newest, isWaiting };
      }
    });
  }

  /** All other control planes have this revision in force: so has this one from now on. */
  followInForce(whole: Revision): void {
    void this.#whenBuilt(whole, (outcome) => {
      if (!outcome.ok) return;
      this.#serve(whole, outcome.built, { isAtOnce: false, trial: this.#served.now.trial });
      // The limits for whose removal it was held back are gone everywhere by now.
      this.#letThrough(whole, outcome.warnings);
    });
  }

  /** Gives the revision on trial to these nodes; all others have what is in force. */
  offerTrial(isOffered: (node: NodeIdentity) => boolean): void {
    const { trial } = this.#served.now;
    if (trial !== undefined) this.#served.change({ trial: { ...trial, isOffered } });
  }

  /** The revision on trial is in force for everybody. */
  endTrial(): void {
    const { trial } = this.#served.now;
    if (trial === undefined) return;
    this.#serve(trial.whole, trial.built, { isAtOnce: false, trial: undefined });
    this.#takeWaiting();
  }

  /** Nobody has the revision on trial any more: it is refused, for this reason. */
  takeBackTrial(reason: string): void {
    const { trial, inForce } = this.#served.now;
    if (trial === undefined) return;
    const { whole } = trial;
    this.#counts.takenBack++;
    this.#served.change({ trial: undefined });
    const problem = toTakenBack(reason);
    this.#say.refused(whole, [problem], inForce?.revision.id);
    const newest = this.#newest;
    if (newest?.whole.id === whole.id) {
      const problems = [...newest.problems, problem];
      this.#newest = { ...newest, problems, invalidSinceMs: this.#deps.clock.wallMs() };
    }
    this.#takeWaiting();
  }

  /** Resolves when the revision in force is saved on disk. Idempotent; the store stays open. */
  async close(): Promise<void> {
    this.#stopWatching();
    this.#isClosed = true;
    await this.#deps.building.close();
    await this.#unfinished.settled();
    await this.#lastGood.settled();
  }

  /** Resolves when it has been examined, at once where it is small. */
  #apply(revision: Revision): Promise<void> | undefined {
    const { memory } = this.#deps;
    const canJudge = memory.otherVersion === undefined && memory.isKnown;
    this.#unexamined = canJudge ? undefined : revision;
    if (this.#unexamined !== undefined || revision.id === this.#newest?.whole.id) {
      this.#examined = undefined;
      return undefined;
    }
    return this.#take(revision, () => {
      for (const listener of [...this.#newestListeners]) listener();
    });
  }

  /** Does what is judged of the newest revision, when it arrives and when something else is known of it. */
  #take(whole: Revision, andThen = () => {}): Promise<void> | undefined {
    this.#examined = whole;
    return this.#whenBuilt(whole, (outcome) => {
      if (this.#examined !== whole) return;
      if (!isLarge(whole) && !this.#needsSteps(whole, outcome)) {
        const candidate = this.#toCandidate(whole, outcome);
        this.#way = { steps: [], approvals: this.#approvalsOf(whole, []) };
        this.#settle(candidate, judge(candidate, outcome, this.#circumstances([])));
        andThen();
        return;
      }
      return this.#judgeInSlices(whole, outcome, andThen);
    });
  }

  /** Begins again where what it depends on has changed meanwhile. */
  async #judgeInSlices(whole: Revision, outcome: BuildOutcome, andThen: () => void): Promise<void> {
    for (;;) {
      const turns = this.#turns;
      const { now } = this.#served;
      const steps = await this.#findSteps(whole, outcome);
      if (this.#isClosed || this.#examined !== whole) return;
      const candidate = this.#toCandidate(whole, outcome);
      const approvals = this.#approvalsOf(whole, steps);
      const given = this.#circumstances(this.#policySteps.toSteps(steps, whole.id));
      const judgement = await runInSlices(judging(candidate, outcome, given));
      if (this.#isClosed || this.#examined !== whole) return;
      if (turns !== this.#turns || now !== this.#served.now) continue;
      this.#way = { steps, approvals };
      this.#settle(candidate, judgement);
      andThen();
      return;
    }
  }

  #toCandidate(whole: Revision, outcome: BuildOutcome): Candidate {
    const { memory } = this.#deps;
    const content = outcome.ok ? outcome.built.content : undefined;
    const saidBefore = findSaidBefore(whole, content, this.#newest, {
      memory,
      seen: this.#seenIds,
    });
    return { whole, content, saidBefore };
  }

  #settle(candidate: Candidate, judgement: Judgement): void {
    const { clock } = this.#deps;
    const before = this.#newest;
    const { whole } = candidate;
    this.#examined = undefined;
    addBounded(this.#seenIds, whole.id);
    const { becomes, isHeldBack } = judgement;
    const problems = this.#named(judgement.problems);
    const isRefused = becomes === 'refused';
    this.#newest = {
      ...candidate,
      problems,
      isHeldBack,
      isWaiting: becomes === 'waiting',
      invalidSinceMs: isRefused ? (before?.invalidSinceMs ?? clock.wallMs()) : undefined,
    };
    const { inForce, trial } = this.#served.now;
    if (!isRefused) this.#say.warnings(problems);
    if (judgement.exception !== undefined) this.#say.excused(whole, judgement.exception);
    if (judgement.trial === 'withdrawn' && trial !== undefined) {
      this.#withdrawn = { revision: trial.whole.id, by: whole.id };
      this.#say.withdrawn(trial.whole, whole);
    }
    switch (judgement.becomes) {
      case 'refused':
        if (judgement.trial !== 'stays') this.#served.change({ trial: undefined });
        this.#counts.refused++;
        this.#say.refused(whole, problems, inForce?.revision.id);
        break;
      case 'in_force': {
        const isAnswer = before?.invalidSinceMs !== undefined || inForce === undefined;
        this.#serve(whole, judgement.built, { isAtOnce: true, trial: undefined }, isAnswer);
        break;
      }
      case 'on_trial':
        if (trial?.whole.id !== whole.id) this.#beginTrial(whole, judgement.built);
        break;
      case 'waiting':
        if (trial !== undefined) this.#say.waits(whole, trial.whole);
    }
  }

  /** Whether others than its author may have made what comes into force with it. */
  #needsSteps(whole: Revision, outcome: BuildOutcome): boolean {
    const before = this.#before();
    return (
      outcome.ok &&
      this.#deps.store.between !== undefined &&
      before !== undefined &&
      before.revision.id !== whole.id &&
      (before.built.policyText ?? outcome.built.policyText) !== undefined
    );
  }

  async #findSteps(whole: Revision, outcome: BuildOutcome): Promise<readonly KnownStep[]> {
    const before = this.#before();
    if (!outcome.ok || before === undefined || !this.#needsSteps(whole, outcome)) return [];
    return this.#policySteps.find(before, whole, outcome.built);
  }

  /** The steps to a revision from what is in force, each with whoever made it; empty where that is the same. `built`:
   * undefined where it has errors. */
  async stepsTo(whole: Revision, built: BuiltSnapshots | undefined): Promise<readonly Step[]> {
    const before = this.#before();
    if (before === undefined || before.revision.id === whole.id) return [];
    const steps = await this.#policySteps.find(before, whole, built);
    return this.#policySteps.toSteps(steps, whole.id);
  }

  /** Names the revisions on the way to the newest one that somebody has approved. */
  #approvalsOf(newest: Revision, steps: readonly KnownStep[]): string {
    const { memory } = this.#deps;
    const makers = steps.flatMap((step) => step.makers);
    const known = [...makers, { revision: newest.id, content: undefined }];
    return known
      .flatMap(({ revision = newest.id, content = '' }) =>
        memory.verdictOf(revision, content)?.outcome === 'approved' ? revision : [],
      )
      .join();
  }

  /** What somebody may approve by its name although it is not the newest: it was refused with that. */
  contentOfStep(id: string): string | undefined {
    const newest = this.#newest;
    if (newest?.invalidSinceMs === undefined) return undefined;
    if (newest.whole.id === id) return newest.content;
    const makers = this.#way?.steps.flatMap((step) => step.makers) ?? [];
    return makers.find(({ revision }) => revision === id)?.content;
  }

  #before(): Circumstances['before'] {
    return this.#served.now.inForce ?? this.#servedBefore;
  }

  #circumstances(steps: readonly Step[]): Circumstances {
    const { memory, allowsRemoval } = this.#deps;
    const serving = this.#served.now;
    return {
      steps,
      serving,
      before: this.#before(),
      memory,
      served: this.#servedContents,
      allowsRemoval,
    };
  }

  #beginTrial(whole: Revision, built: BuiltSnapshots): void {
    const { memory, clock } = this.#deps;
    // One that comes while the end of another one is not on record yet does not bring that back.
    if (this.#withdrawn?.revision === whole.id) this.#withdrawn = undefined;
    this.#served.change({
      trial: {
        whole,
        sinceMs: clock.wallMs(),
        built,
        saidBefore:
          this.#newest?.whole.id === whole.id
            ? this.#newest.saidBefore
            : memory.verdictOf(whole.id, built.content),
        isOffered: () => false,
      },
    });
  }

  /** `trial`: what only some nodes get from now on. */
  #serve(
    whole: Revision,
    built: BuiltSnapshots,
    { isAtOnce, trial }: Pick<InForce, 'isAtOnce'> & Pick<Serving, 'trial'>,
    // Seen at the default level when it answers a question: what is served, and whether a repair worked.
    isAnswer = true,
  ): void {
    const { clock } = this.#deps;
    const before = this.#served.now;
    this.#counts.accepted++;
    const revision = toRevisionInfo(whole);
    this.#served.change({ inForce: { revision, sinceMs: clock.wallMs(), built, isAtOnce }, trial });
    addBounded(this.#servedContents, built.content);
    this.#lastGood.keep(whole);
    const isNews = before.trial !== undefined || before.inForce?.built.content !== built.content;
    this.#say.inForce(revision, built, isNews, isAnswer);
  }

  /** A file has one name in status, log, history and notifications. */
  #named(problems: readonly Problem[]): readonly Problem[] {
    const { repositoryFolder = '' } = this.#deps;
    return problems.map((each) => inRepository(each, repositoryFolder));
  }

  /** The other control planes have judged otherwise than this one. */
  #letThrough({ id }: Revision, problems: readonly Problem[]): void {
    if (this.#newest?.whole.id !== id) return;
    const named = this.#named(problems);
    this.#newest = {
      ...this.#newest,
      problems: named,
      invalidSinceMs: undefined,
      isHeldBack: false,
    };
  }

  /** Takes the revision that waited for the end of a trial. */
  #takeWaiting(): void {
    if (this.#newest?.isWaiting) void this.#take(this.#newest.whole);
  }

  #build(revision: Revision): BuildOutcome | Promise<BuildOutcome> {
    const { building } = this.#deps;
    const { id } = revision;
    const toOutcome = ({ outcome }: Built) => outcome;
    if (!isLarge(revision)) {
      const built = building.build(revision);
      return built instanceof Promise ? built.then(toOutcome) : toOutcome(built);
    }
    if (this.#built?.id === id) return this.#built.outcome;
    const outcome = this.#unfinished.during(id, () => building.build(revision)).then(toOutcome);
    this.#built = { id, outcome };
    return outcome.then((done) => {
      if (this.#built?.id === id) this.#built = { id, outcome: done };
      return done;
    });
  }

  /** At once where it is small or known. */
  #whenBuilt(
    revision: Revision,
    use: (outcome: BuildOutcome) => Promise<void> | undefined | void,
  ): Promise<void> | undefined {
    const built = this.#build(revision);
    if (!(built instanceof Promise)) return use(built) ?? undefined;
    return built
      .then((outcome) => (this.#isClosed ? undefined : use(outcome)))
      .catch((error: unknown) => {
        this.#deps.log.error(`Revision ${revision.id} is not examined: ${errorText(error)}`);
      });
  }

  /** `why`: the reason for serving an earlier revision. */
  #restore(kept: Kept | undefined, why: string): void {
    const { log, clock } = this.#deps;
    if (kept === undefined) {
      log.error(`${why}, and no earlier revision was kept: workers get nothing until there is one`);
      return;
    }
    if (kept.trouble !== undefined) {
      log.error(kept.trouble);
      return;
    }
    const { revision, outcome } = kept;
    const info = toRevisionInfo(revision);
    if (!outcome.ok) {
      this.#say.refused(info, this.#named(outcome.problems), undefined);
      return;
    }
    const { built } = outcome;
    const sinceMs = clock.wallMs();
    this.#served.change({ inForce: { revision: info, sinceMs, built, isAtOnce: false } });
    this.#say.restored(info, built, why, sinceMs);
  }
}

/** The oldest one goes. */
function addBounded(texts: Set<string>, text: string): void {
  texts.add(text);
  const [oldest = ''] = texts;
  if (texts.size > maxRemembered) texts.delete(oldest);
}
