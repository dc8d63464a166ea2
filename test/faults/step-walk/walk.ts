// One random walk of a fleet's states: what happens, the order of the effects, and the violations.
import {
  openRolloutOf,
  type RolloutRecord,
  whyTakenBack,
} from '../../../control-plane/server/record/record.ts';
import { leads } from '../../../control-plane/server/record/record-state.ts';
import { parseRolloutPlan } from '../../../control-plane/server/rollout/plan.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { revisionOf } from '../../support/revision-store.ts';
import { findWrong, readStatuses } from './reported.ts';
import {
  contentOf,
  type Effect,
  numberOf,
  SteppedFleet,
  type SteppedPlane,
  type SteppedWorker,
} from './stepped-fleet.ts';

export interface WalkResult {
  /** The events, as lines of a scenario. */
  readonly lines: readonly string[];
  readonly finding: string | undefined;
  readonly events: number;
  /** How often each invariant was checked. */
  readonly checks: ReadonlyMap<string, number>;
}

const plans = [
  'canary=20%,hold=3s',
  'canary=20%,hold=5s,on-silence=stop',
  '20%:2s,50%:3s',
  '10%:2s,50%:2s,on-indivisible=proceed',
];
/** A take-back reaches every reachable worker within this time, including a poll and a query to the peers. */
const undoneSeconds = 12;
/** Until it is repaired. */
const brokenSeconds = 45;

/** Equal seeds have equal results. */
export function walk(seed: number, isTraced = false): WalkResult {
  const walking = new Walk(createRandom(seed), isTraced);
  try {
    walking.run();
  } catch (error) {
    walking.find(`an exception: ${error instanceof Error ? error.stack : error}`);
  }
  const { lines, finding, events, checks } = walking;
  return { lines, finding, events, checks };
}

class Walk {
  readonly lines: string[] = [];
  readonly checks = new Map<string, number>();
  finding: string | undefined;
  events = 0;
  readonly #random: Random;
  readonly #isTraced: boolean;
  readonly #fleet: SteppedFleet;
  readonly #steps: readonly { readonly percent: number }[];
  #second = 0;
  #passed = 0;
  #contents = 1;
  /** Delayed tasks, by second. */
  #due: { readonly at: number; readonly task: () => void }[] = [];
  /** Contents that an operator, or their author's trailer, has let through. */
  readonly #letThrough = new Set<number>();
  /** The workers that were ever offered the revision of the open rollout. */
  #offered = { id: '', instances: new Set<string>() };
  /** Contents that a worker has acknowledged. */
  readonly #acknowledged = new Set<number>();
  readonly #takenBack = new Set<string>();
  readonly #wellSince = new Map<string, number>();
  readonly #unwantedSince = new Map<number, number>();
  /** By content of a build: when it was on record as in force. */
  readonly #inForceAt = new Map<string, number>();
  /** By control plane and report: since when it has been wrong. */
  readonly #wrongSince = new Map<string, number>();
  #newestAt = 0;
  /** Whether the newest revision is for all workers at once. */
  #isForAll = false;
  #evidenceSince: number | undefined;
  /** When a worker last lied, refused rules by itself, or was not connected. */
  #liedAt = Number.NEGATIVE_INFINITY;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #goneAt = Number.NEGATIVE_INFINITY;
  #begunAt = 0;
  #connected: number[] = [];
  #lostAt = Number.NEGATIVE_INFINITY;

  constructor(random: Random, isTraced: boolean) {
    this.#random = random;
    this.#isTraced = isTraced;
    const plan = random.pick(plans);
    const planes = ['a', 'b', 'c'].slice(0, random.pick([1, 2, 2, 3]));
    const parsed = parseRolloutPlan(plan);
    this.#steps = parsed.ok ? parsed.plan.steps : [];
    let drawn = 0;
    const first = revisionOf(1);
    const drawId = () => `id-${random.below(1_000)}-${++drawn}`;
    const workers = random.pick([5, 6, 10]);
    this.#fleet = new SteppedFleet({ plan, planes, workers, drawId }, first);
    this.#fleet.onRecord = (before, now) => this.#checkRecord(before, now);
    this.lines.push(`fleet ${plan} ${workers} ${planes.join(' ')}`);
  }

  run(): void {
    const fleet = this.#fleet;
    for (const plane of fleet.planes) fleet.start(plane, false);
    for (let at = 0; at < 8; at++) this.#doAll();
    for (let at = 0; at < fleet.options.workers; at++) {
      fleet.addWorker(`w-${at}`, fleet.planes[at % fleet.planes.length]);
    }
    for (let at = 0; at < 8; at++) this.#pass(1);
    while (this.#second < brokenSeconds && this.finding === undefined) {
      if (this.#random.chance(0.35)) this.#happen();
      this.#pass(0.7);
    }
    if (this.finding === undefined) this.#end();
  }

  find(text: string): void {
    this.finding ??= text;
  }

  #log(line: string): void {
    if (this.#passed > 0) this.lines.push(`pass ${this.#passed}`);
    this.#passed = 0;
    this.lines.push(line);
  }

  /** Prints the record, what each control plane serves, and what the workers are offered. */
  #trace(): void {
    const { record, planes, workers, tasks } = this.#fleet;
    const short = (id: string | undefined) => id?.replace(/f+$/, '').replace(/^0+/, '');
    const { rollout, inForce = [], leader } = record ?? {};
    const open = rollout && `${short(rollout.revision)} ${rollout.outcome} ${rollout.step}`;
    const states = planes.map(({ name, serving, record: own, fleet, isStanding }) => {
      const { trial, newest } = serving;
      const waits = newest?.isWaiting ? ' waits' : newest?.isHeldBack ? ' held' : '';
      const known = short(own.known.record.rollout?.revision);
      const on = trial && ` on trial ${short(trial.revision.id)}`;
      return `${name}${fleet ? '' : ' down'}${isStanding ? ' stands' : ''} in force ${short(serving.inForce?.revision.id)}${on ?? ''} newest ${short(newest?.revision.id)}${waits} knows ${known} ${own.known.record.rollout?.outcome} ${own.error ?? ''} ${fleet?.decision.text}`;
    });
    const notified = workers.map(
      (each) => `${each.plane?.name}${contentOf(each.notified)}/${contentOf(each.has)}`,
    );
    this.#log(
      `    # record ${open} by ${leader?.name}, in force ${inForce.map(({ revision }) => short(revision))}; ${states.join('; ')}; ${notified.join(' ')}; ${tasks.map(({ plane, what }) => `${plane.name} ${what}`).join(', ')}`,
    );
  }

  #note(check: string): void {
    this.checks.set(check, (this.checks.get(check) ?? 0) + 1);
  }

  /** One second, in which a share of the pending effects is done, in some order. */
  #pass(share: number): void {
    const fleet = this.#fleet;
    const random = this.#random;
    this.#doSome(share);
    for (const worker of [...fleet.workers])
      if (share === 1 || random.chance(0.8)) this.#answer(worker);
    this.#doSome(share);
    this.#second++;
    this.#passed++;
    fleet.pass();
    this.#doSome(share);
    const due = this.#due.filter(({ at }) => at <= this.#second);
    this.#due = this.#due.filter((each) => !due.includes(each));
    for (const { task } of due) task();
    const running = this.#running();
    for (const worker of fleet.workers) {
      const isAway = worker.plane === undefined && !this.#left.has(worker);
      if (isAway && running.length > 0 && random.chance(0.5))
        fleet.connect(worker, random.pick(running));
    }
    if (this.#isTraced) this.#trace();
    this.#check();
  }

  readonly #left = new Set<SteppedWorker>();

  #answer(worker: SteppedWorker): void {
    this.#fleet.answer(worker);
    if (worker.has !== undefined) this.#acknowledged.add(numberOf(worker.has));
  }

  /** Does each possible task with this chance. */
  #doSome(share: number): void {
    const fleet = this.#fleet;
    for (let left = 100; left > 0; left--) {
      const able = fleet.tasks.filter(({ plane }) => !plane.isStanding);
      if (able.length === 0 || !this.#random.chance(share)) return;
      const task = this.#random.pick(able);
      fleet.tasks.splice(fleet.tasks.indexOf(task), 1);
      this.events++;
      task.perform();
    }
  }

  #doAll(): void {
    this.#doSome(1);
  }

  #running(): SteppedPlane[] {
    return this.#fleet.planes.filter((each) => each.fleet !== undefined && !each.isStanding);
  }

  /** Something that is so for a while. */
  #setForAWhile(what: string, set: (isSo: boolean) => void): void {
    set(true);
    this.#later(what, () => set(false));
  }

  #later(what: string, task: () => void): void {
    const seconds = 1 + this.#random.below(14);
    this.#due.push({ at: this.#second + seconds, task });
    this.#log(`${what} (for ${seconds} s)`);
  }

  #publish(what: string, content: number, message?: string, effect: Effect = {}): void {
    const fleet = this.#fleet;
    const id = String(fleet.revisions.length + 1).padEnd(40, 'f');
    if (content > this.#contents) this.#contents = content;
    if (Object.keys(effect).length > 0) fleet.effects.set(content, effect);
    this.#newestAt = this.#second;
    const [inForce] = fleet.record?.inForce ?? [];
    const isUndo = what === 'undo' && fleet.contentOfRevision(inForce?.revision ?? '') === content;
    this.#isForAll = isUndo || what === 'now';
    const revision = { ...revisionOf(content, message && `better\n\n${message}`), id };
    this.#log(`publish ${fleet.revisions.length + 1} like ${content} (${what})`);
    fleet.publish(content === 0 ? { ...revision, files: [] } : revision);
  }

  #happen(): void {
    const random = this.#random;
    const fleet = this.#fleet;
    this.events++;
    const plane = random.pick(fleet.planes);
    const worker = random.pick(fleet.workers);
    const next = this.#contents + 1;
    const record = fleet.record;
    const past =
      record?.inForce.map(({ revision }) => this.#fleet.contentOfRevision(revision)) ?? [];
    const bad = random.pick([
      { isRefused: true },
      { isDeadly: true },
      { errors: 0.5 },
      { overLimit: 1 },
    ]);
    const badName = Object.keys(bad)[0] ?? '';
    const drawn = random.below(45);
    if (drawn < 6) this.#publish('good', next);
    else if (drawn < 11) this.#publish(badName, next, undefined, bad);
    else if (drawn === 11) this.#publish('now', next, 'Rollout: now');
    else if (drawn === 12) this.#publish('supersede', next, 'Rollout: supersede');
    else if (drawn === 13) this.#publish(`supersede, ${badName}`, next, 'Rollout: supersede', bad);
    else if (drawn < 16 && past.length > 0) this.#publish('undo', random.pick(past));
    else if (drawn < 18) this.#publish('any before', 1 + random.below(this.#contents));
    else if (drawn === 18) {
      this.#publish('again', 1 + random.below(this.#contents), 'Rollout: again');
    } else if (drawn === 19) this.#publish('nothing', 0);
    else if (drawn === 20) {
      fleet.dropped.add(fleet.newest.id);
      this.#log(`drop ${fleet.revisions.length}`);
      this.#publish('in its place', next);
    } else if (drawn < 26) this.#act(plane);
    else if (drawn < 29) this.#end1(plane);
    else if (drawn === 29) {
      this.#setForAWhile(`stall ${plane.name}`, (isSo) =>
        Object.assign(plane, { isStanding: isSo }),
      );
    } else if (drawn < 32) {
      this.#setForAWhile(`cut ${plane.name}`, (isSo) => Object.assign(plane, { isCutOff: isSo }));
    } else if (drawn < 35) {
      const reach = random.pick(['away', 'denied']);
      this.#setForAWhile(`reach ${plane.name} ${reach}`, (isSo) =>
        Object.assign(plane, { reach: isSo ? reach : 'fine' }),
      );
    } else if (drawn < 37) {
      const how = random.pick(['goodbye', 'broken'] as const);
      fleet.disconnect(worker, how);
      this.#left.add(worker);
      this.#later(`${worker.node.id} leaves, ${how}`, () => this.#left.delete(worker));
    } else if (drawn === 37) {
      const answer = random.pick(['ignore', 'refuse']);
      this.#setForAWhile(`${worker.node.id} answers by ${answer}`, (isSo) =>
        Object.assign(worker, { answer: isSo ? answer : 'take' }),
      );
    } else if (drawn === 38) {
      this.#log(`come ${worker.node.id}`);
      fleet.addWorker(worker.node.id, undefined);
    } else if (drawn === 39) {
      fleet.wallMs += (random.below(2_000) - 1_000) * 60_000;
      this.#log('the wall clock jumps');
    } else if (drawn < 42) {
      if (!fleet.loseWrite()) return;
      this.#lostAt = this.#second;
      this.#log('the last write of the record is lost');
    } else if (drawn === 42) {
      const lies = random.pick([{ errors: 1 }, { overLimit: 1 }, {}]);
      this.#setForAWhile(`${worker.node.id} reports ${JSON.stringify(lies)}`, (isSo) =>
        Object.assign(worker, { lies: isSo ? lies : undefined }),
      );
    } else if (drawn === 43) {
      const silent = random.chance(0.2) ? [...fleet.workers] : [worker];
      this.#setForAWhile(`${silent.length} report nothing`, (isUnlinked) => {
        for (const each of silent) Object.assign(each, { isUnlinked });
      });
    } else {
      this.#setForAWhile(`${plane.name} notices nothing`, (isLate) =>
        Object.assign(plane, { isLate }),
      );
    }
  }

  /** A kill also discards pending effects, even between two of them. */
  #end1(plane: SteppedPlane): void {
    const fleet = this.#fleet;
    if (!plane.isUp) return;
    // A state that both places have lost cannot be known.
    const isFresh = this.#random.chance(0.3) && !this.#isLost();
    const isStopped = this.#random.chance(0.3) && !plane.isStanding;
    for (let left = this.#random.below(4); left > 0; left--) this.#doSome(0.7);
    if (isStopped) fleet.stop(plane);
    else fleet.kill(plane);
    const what = `${isStopped ? 'stop' : 'kill'} ${plane.name}${isFresh ? ' fresh' : ''}`;
    this.#later(what, () => {
      if (plane.isUp) fleet.kill(plane);
      fleet.start(plane, isFresh);
    });
  }

  #act(plane: SteppedPlane): void {
    const fleet = this.#fleet;
    if (plane.fleet === undefined || plane.isStanding) return;
    const action = this.#random.pick([
      ...(['pause', 'resume', 'retry', 'promote', 'abort', 'abort', 'undo', 'approve'] as const),
    ]);
    const open = openRolloutOf(plane.record.known.record);
    const content = this.#fleet.contentOfRevision(
      open?.revision ?? plane.serving.newest?.revision.id ?? '',
    );
    if (!['pause', 'abort', 'undo'].includes(action)) {
      this.#letThrough.add(content);
      this.#letThrough.add(this.#fleet.contentOfRevision(plane.serving.newest?.revision.id ?? ''));
    }
    this.#log(`act ${action} ${plane.name}`);
    fleet.act(plane, action, (problem) => {
      this.#log(`# ${action} at ${plane.name}: ${problem ?? 'done'}`);
      if (action !== 'abort' || problem !== undefined || open === undefined) return;
      this.#note('a rollout that was reported as over is over');
      const now = fleet.record?.rollout;
      if (now?.id === open.id && now.outcome !== 'taken_back') {
        this.find(`abort of ${open.id} was done, and it is ${now.outcome}`);
      }
    });
  }

  #shareAt(step: number): number {
    const most = Math.max(...this.#connected.slice(-60));
    return Math.max(1, Math.floor((most * (this.#steps[step]?.percent ?? 100)) / 100));
  }

  /** Each new record must follow from the previous one. */
  #checkRecord(before: RolloutRecord | undefined, now: RolloutRecord): void {
    const [was, is] = [before?.inForce[0], now.inForce[0]];
    const { rollout } = now;
    this.#note('a take-back is never lost');
    if (rollout !== null && rollout.outcome !== 'taken_back' && this.#takenBack.has(rollout.id)) {
      this.find(`rollout ${rollout.id} was taken back, and is ${rollout.outcome}`);
    }
    for (const { outcome, rollout: id } of now.verdicts)
      if (outcome === 'taken_back' && id !== undefined) this.#takenBack.add(id);
    const open = openRolloutOf(now);
    const begun = open !== undefined && open.id !== before?.rollout?.id ? open : undefined;
    if (begun !== undefined) {
      this.#note('what was taken back is not tried again by itself');
      const word = before?.verdicts.find(({ revision }) => revision === begun.revision);
      if (word?.outcome === 'taken_back' && !/has taken its place/.test(word.reason)) {
        this.find(`revision ${begun.revision.slice(0, 4)} begins again after: ${word.reason}`);
      }
    }
    if (begun !== undefined) this.#begunAt = this.#second;
    this.#checkJustice(before, now);
    if (is === undefined || was === undefined || is.content === was.content) return;
    const content = this.#fleet.contentOfRevision(is.revision);
    const [last] = now.outcomes;
    const isOfRollout = rollout?.outcome === 'in_force' && rollout.content === is.content;
    const wasTried = isOfRollout && before?.rollout?.id === rollout.id;
    if (wasTried && openRolloutOf(before ?? now)?.id === rollout.id && last?.by === '') {
      this.#note('nothing is in force for all without an acknowledgement');
      const changesNoWorker = /leave no worker out|changes nothing|no share/.test(rollout.reason);
      if (!this.#acknowledged.has(content) && !changesNoWorker) {
        this.find(`content ${content} is in force, but no worker has had it: ${rollout.reason}`);
      }
      this.#note('what is bad is not in force for all');
      // An operator has let through one that is no better.
      const isWorse = !this.#fleet.effects.has(this.#fleet.contentOfRevision(was.revision));
      const isBad = isWorse && this.#fleet.effects.has(content) && !changesNoWorker;
      if (isBad && !this.#letThrough.has(content) && !this.#isUndo(is.content, before)) {
        this.find(`content ${content} is bad, and in force: ${rollout.reason}`);
      }
    }
    if (!isOfRollout && !this.#letThrough.has(content)) {
      this.#note('a revision in force at once was so before, or its author requested it');
      // Another revision with these rules may have come while the one with `now` could not be recorded.
      const isNow = this.#fleet.revisions.some(
        ({ id, message }) =>
          this.#fleet.contentOfRevision(id) === content && message?.includes('Rollout: now'),
      );
      const bad = before && whyTakenBack(before, is.content);
      if (!isNow && !this.#isUndo(is.content, before)) {
        this.find(`content ${content} is in force at once`);
      }
      if (bad !== undefined) this.find(`content ${content} is in force at once, after: ${bad}`);
    }
  }

  #observeWorkers(): void {
    const { workers } = this.#fleet;
    if (workers.some(({ lies }) => lies !== undefined)) this.#liedAt = this.#second;
    if (workers.some(({ answer }) => answer === 'refuse')) this.#refusedAt = this.#second;
    if (workers.some(({ plane }) => plane === undefined)) this.#goneAt = this.#second;
  }

  /** A write of the record was lost, which some control plane may not know yet. */
  #isLost(): boolean {
    return this.#second - this.#lostAt <= undoneSeconds;
  }

  /** A good revision is taken back or paused only for an existing reason. */
  #checkJustice(before: RolloutRecord | undefined, { rollout, verdicts }: RolloutRecord): void {
    const isSame =
      before?.rollout?.id === rollout?.id && before?.rollout?.outcome === rollout?.outcome;
    if (rollout === null || isSame || !/paused|taken_back/.test(rollout.outcome)) return;
    const content = this.#fleet.contentOfRevision(rollout.revision);
    const by = verdicts.find((each) => each.rollout === rollout.id)?.by;
    const isByOperator = rollout.outcome === 'taken_back' && by !== '';
    if (this.#fleet.effects.has(content) || isByOperator || this.#isLost()) return;
    this.#observeWorkers();
    this.#note('a good revision is not stopped without a reason');
    const { reason } = rollout;
    if (/has taken its place|by ada$|too little traffic|no figures|nobody/.test(reason)) return;
    const at = / refuses? it/.test(reason)
      ? this.#refusedAt
      : / gone/.test(reason)
        ? this.#goneAt
        : this.#liedAt;
    if (at < this.#begunAt - undoneSeconds) {
      this.find(`content ${content} is good, and ${rollout.outcome}: ${reason}`);
    }
  }

  #isUndo(content: string, before: RolloutRecord | undefined): boolean {
    const was = before?.inForce.some((each) => each.content === content) === true;
    // A control plane that undoes an undo may not know the first one yet, or its end has been lost.
    const within = before && openRolloutOf(before)?.content === content ? undoneSeconds : 5;
    return was || this.#second - (this.#inForceAt.get(content) ?? -undoneSeconds - 1) <= within;
  }

  #check(): void {
    const fleet = this.#fleet;
    const { record } = fleet;
    const connected = fleet.workers.filter(({ plane }) => plane !== undefined);
    this.#connected.push(connected.length);
    for (const plane of fleet.planes) {
      const isWell =
        plane.fleet !== undefined && !plane.isStanding && plane.reach === 'fine' && !plane.isCutOff;
      if (!isWell) this.#wellSince.delete(plane.name);
      else if (!this.#wellSince.has(plane.name)) this.#wellSince.set(plane.name, this.#second);
    }
    this.#observeWorkers();
    // A control plane may learn of a lost write only once it is well.
    const areWell = fleet.planes.every(({ name }) => this.#wellSince.has(name));
    if (this.#isLost() && !areWell) this.#lostAt = this.#second;
    if (record === undefined) return;
    this.#checkReported();
    this.#checkEvidence(record);
    for (const { content } of record.inForce) this.#inForceAt.set(content, this.#second);
    const open = openRolloutOf(record);
    const isInForce = open?.content === record.inForce[0]?.content;
    if (open !== undefined && !isInForce) {
      this.#note('no more than the share of the step are ever offered it');
      const content = this.#fleet.contentOfRevision(open.revision);
      // A control plane that has not read the record yet may offer the same content from an earlier one.
      const isKnown = ({ plane }: SteppedWorker) =>
        plane?.record.known.record.rollout?.id === open.id;
      if (open.id !== this.#offered.id) this.#offered = { id: open.id, instances: new Set() };
      const { instances } = this.#offered;
      for (const each of connected)
        if (isKnown(each) && contentOf(each.notified) === content) instances.add(each.instance);
      const offered = instances.size;
      // Workers that have left stay on record until the rollout is paused because of that.
      const isGiven = open.chosen.length + open.whole.length > 0 || open.outcome === 'paused';
      const share = isGiven ? this.#shareAt(open.step) : 0;
      // Content with `now`, or that was in force, may be on all workers. A control plane may not know yet that the
      // content of all workers has been undone.
      const wasJustInForce = this.#second - (this.#inForceAt.get(open.content) ?? -10) <= 5;
      const isAtOnce =
        wasJustInForce || (this.#wanted(record).has(content) && this.#isAtOnce(content, record));
      // They were offered it because of a lost write.
      if (offered > share && !isAtOnce && !this.#isLost() && !this.#letThrough.has(content)) {
        this.find(`${offered} are offered content ${content}, and the step has ${share}`);
      }
    }
    const wanted = this.#wanted(record);
    for (let content = 0; content <= this.#contents; content++) {
      if (wanted.has(content)) this.#unwantedSince.delete(content);
      else if (!this.#unwantedSince.has(content)) this.#unwantedSince.set(content, this.#second);
    }
    for (const { plane, notified, node } of connected) {
      const wellSince = this.#wellSince.get(plane?.name ?? '');
      const content = contentOf(notified);
      if (wellSince !== undefined && this.#isForAll) {
        this.#note('an undo reaches all workers');
        const isLate = this.#second - Math.max(wellSince, this.#newestAt) > undoneSeconds;
        if (isLate && content !== fleet.contentOfRevision(fleet.newest.id)) {
          this.find(`${node.id} at ${plane?.name} is offered content ${content}, not the newest`);
        }
      }
      const since = content === undefined ? undefined : this.#unwantedSince.get(content);
      if (wellSince === undefined || since === undefined) continue;
      this.#note('no worker is offered a revision that was taken back or undone');
      if (this.#second - Math.max(wellSince, since) > undoneSeconds) {
        this.find(
          `${node.id} at ${plane?.name} is offered content ${content}, unwanted since ${since} s; wanted: ${[...wanted]}`,
        );
      }
    }
  }

  #wellFor(plane: SteppedPlane | undefined): number {
    return this.#second - (this.#wellSince.get(plane?.name ?? '') ?? this.#second);
  }

  /** What a control plane reports may be outdated, but does not stay wrong. */
  #checkReported(): void {
    if (this.#second % 2 !== 0) return;
    const fleet = this.#fleet;
    const isCalm = fleet.planes.every((each) => this.#wellFor(each) > undoneSeconds);
    const statuses = readStatuses(fleet);
    const seen = new Set<string>();
    for (const plane of statuses.keys()) {
      if (this.#wellFor(plane) <= undoneSeconds) continue;
      this.#note('what is reported is so');
      for (const what of findWrong(fleet, plane, statuses, isCalm)) {
        const key = `${plane.name}: ${what.replaceAll(/\d+/g, '')}`;
        seen.add(key);
        const since = this.#wrongSince.get(key) ?? this.#second;
        this.#wrongSince.set(key, since);
        if (this.#second - since > undoneSeconds) {
          this.find(`${plane.name} reports since second ${since}: ${what}`);
        }
      }
    }
    for (const key of this.#wrongSince.keys()) if (!seen.has(key)) this.#wrongSince.delete(key);
  }

  /** If the leader has no problems, a bad revision is taken back soon. */
  #checkEvidence(record: RolloutRecord): void {
    const open = openRolloutOf(record);
    const plane = this.#fleet.planes.find((each) => leads(each.record));
    const content = this.#fleet.contentOfRevision(open?.revision ?? '');
    const isEvident =
      open !== undefined &&
      !this.#letThrough.has(content) &&
      this.#wellFor(plane) > 6 &&
      this.#hasEvidence(content, this.#fleet.contentOfRevision(record.inForce[0]?.revision ?? ''));
    if (!isEvident) this.#evidenceSince = undefined;
    else {
      this.#note('a bad revision is taken back');
      this.#evidenceSince ??= this.#second;
      if (this.#second - this.#evidenceSince > undoneSeconds) {
        this.find(`content ${content} is still on trial, bad since ${this.#evidenceSince} s`);
      }
    }
  }

  #hasEvidence(content: number, inForce: number): boolean {
    const { effects, workers } = this.#fleet;
    const { isRefused, errors, overLimit } = effects.get(content) ?? {};
    const notified = workers.filter((each) => each.plane && contentOf(each.notified) === content);
    const seen = notified.filter(({ plane }) => this.#wellFor(plane) > 6);
    if (isRefused) {
      return (
        3 * seen.filter(({ nacked, notified: by }) => nacked === by?.version).length >
        notified.length
      );
    }
    const count = (some: readonly SteppedWorker[], wanted: number) =>
      some.filter(({ has, tally }) => tally && contentOf(has) === wanted).length;
    const areJudged = errors !== undefined || overLimit !== undefined;
    const isLied = this.#second - this.#liedAt < 60;
    const others = workers.filter(({ plane }) => this.#wellFor(plane) > 6);
    return (
      areJudged &&
      !isLied &&
      !effects.has(inForce) &&
      count(seen, content) > 0 &&
      count(others, inForce) > 0
    );
  }

  #isAtOnce(content: number, record: RolloutRecord): boolean {
    const { newest } = this.#fleet;
    const isNewest = this.#fleet.contentOfRevision(newest.id) === content;
    const isNow = newest.message?.includes('Rollout: now') === true;
    return (
      isNewest &&
      (isNow ||
        record.inForce.some((each) => this.#fleet.contentOfRevision(each.revision) === content))
    );
  }

  #wanted(record: RolloutRecord): Set<number> {
    const contents = new Set(
      record.inForce.slice(0, 1).map((each) => this.#fleet.contentOfRevision(each.revision)),
    );
    const open = openRolloutOf(record);
    if (open !== undefined) contents.add(this.#fleet.contentOfRevision(open.revision));
    if (record.inForce.length === 0) contents.add(1);
    const newest = this.#fleet.contentOfRevision(this.#fleet.newest.id);
    if (this.#isAtOnce(newest, record)) contents.add(newest);
    return contents;
  }

  /** Everything is repaired, and an operator ends what waits for one: then all workers have the same rules. */
  #end(): void {
    const fleet = this.#fleet;
    this.#log('# all is repaired');
    this.#due = [];
    for (const plane of fleet.planes) {
      plane.isStanding = false;
      plane.isCutOff = false;
      plane.isLate = false;
      plane.reach = 'fine';
      if (plane.fleet === undefined || plane.fleet.isStopped) {
        fleet.kill(plane);
        fleet.start(plane, false);
      }
    }
    this.#left.clear();
    for (const worker of fleet.workers)
      Object.assign(worker, { answer: 'take', lies: undefined, isUnlinked: false });
    const isOver = () => this.finding !== undefined || this.#whyUnsettled() === undefined;
    for (let left = 120; left > 0 && !isOver(); left--) {
      const [plane] = fleet.planes;
      const isOpen = fleet.record && openRolloutOf(fleet.record) !== undefined;
      if (left % 30 === 0 && left < 90 && isOpen && plane !== undefined) {
        this.#log('act abort a');
        fleet.act(plane, 'abort', () => {});
      }
      this.#pass(1);
    }
    const why = this.#whyUnsettled();
    this.#note('in the end all have the same revision, and no request is open');
    if (why === undefined) this.#proveProgress();
    else this.find(why);
  }

  /** Then a good revision reaches all workers by itself. */
  #proveProgress(): void {
    const fleet = this.#fleet;
    // If an operator has let a bad one through, the workers that have it are no basis for comparison.
    if (fleet.effects.has(this.#fleet.contentOfRevision(fleet.record?.inForce[0]?.revision ?? '')))
      return;
    this.#publish('good', this.#contents + 1);
    const isThere = () => {
      const id = fleet.record?.inForce[0]?.revision;
      return id === fleet.newest.id && this.#whyUnsettled() === undefined;
    };
    for (let left = 60; left > 0 && this.finding === undefined && !isThere(); left--) this.#pass(1);
    this.#note('a good revision comes to all by itself');
    if (!isThere()) {
      const { text } =
        fleet.planes.find(({ fleet: of }) => of?.decision.text)?.fleet?.decision ?? {};
      this.find(`a good revision has not come to all: ${this.#whyUnsettled()}; ${text}`);
    }
  }

  #whyUnsettled(): string | undefined {
    const { record, planes, workers } = this.#fleet;
    if (record === undefined) return 'nothing is on record';
    const open = openRolloutOf(record);
    if (open !== undefined) return `revision ${open.revision.slice(0, 4)} is ${open.outcome} still`;
    const inForce = record.inForce[0];
    const content = this.#fleet.contentOfRevision(inForce?.revision ?? '');
    for (const { name, fleet, serving, asked, record: own } of planes) {
      if (fleet === undefined) return `${name} has not started`;
      if (asked.size > 0) return `a request to ${name} has no answer`;
      if (fleet.writing > 0 && own.job === undefined) return `${name} waits for a write`;
      if (serving.trial !== undefined) return `${name} has a revision on trial`;
      const { inForce: here, newest } = serving;
      if (here?.built.content !== inForce?.content) return `${name} has another one in force`;
      const built = newest?.outcome.ok ? newest.outcome.built : undefined;
      const differs = newest !== undefined && built?.content !== here?.built.content;
      const isRefused = newest?.invalidSinceMs !== undefined || newest?.isHeldBack;
      if (differs && !isRefused) return `${name} has forgotten the newest revision`;
    }
    const isRefused = this.#fleet.effects.get(content)?.isRefused === true;
    const other = workers.find(({ notified, has }) => {
      const isHere = contentOf(notified) === content && (isRefused || contentOf(has) === content);
      return !isHere;
    });
    const isDeadly = this.#fleet.effects.get(content)?.isDeadly === true;
    return other === undefined || isDeadly
      ? undefined
      : `${other.node.id} has content ${contentOf(other.has)} and is offered ${contentOf(other.notified)}, in force is ${content}`;
  }
}
