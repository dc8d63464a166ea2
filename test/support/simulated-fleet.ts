// A fleet in one process: control planes with real snapshots, records and rollouts, and workers that accept, count,
// refuse, leave and lie as a test wants. The clock is manual.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type Counted, Tally } from '../../control-plane/server/fleet/tally.ts';
import { toTotals } from '../../control-plane/server/fleet/worker-figures.ts';
import type { OwnText } from '../../control-plane/server/record/own-text.ts';
import { parseRecord, type RolloutRecord } from '../../control-plane/server/record/record.ts';
import { RecordKeeper } from '../../control-plane/server/record/record-keeper.ts';
import {
  type LeaderTiming,
  toRevisionMemory,
} from '../../control-plane/server/record/record-state.ts';
import type { RolloutFacts } from '../../control-plane/server/rollout/facts.ts';
import { Rollout, type RolloutDeps } from '../../control-plane/server/rollout/rollout.ts';
import { Building } from '../../control-plane/server/snapshot/building.ts';
import { SnapshotCache } from '../../control-plane/server/snapshot/cache.ts';
import type {
  NodeIdentity,
  Resource,
  Snapshot,
} from '../../control-plane/server/snapshot/snapshot.ts';
import type { Revision } from '../../control-plane/server/store/revision.ts';
import type { SharedText } from '../../control-plane/server/store/shared-text.ts';
import type { ConfigStore } from '../../control-plane/server/store/store.ts';
import {
  type ConnectedWorker,
  type ConnectedWorkers,
  markUnused,
  type VanishedWorker,
} from '../../control-plane/server/xds/workers.ts';
import { repeatAfter } from '../../shared/clock.ts';
import { instanceKey } from '../../shared/instance-key.ts';
import type { TotalsMessage } from '../../shared/wire/fleet-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createManualClock } from './manual-clock.ts';
import { createMemoryText, createSimulatedText } from './record-texts.ts';
import { createRecordedLog } from './recorded-log.ts';
import { createRevisionStore, revisionOf } from './revision-store.ts';
import { createRulesFolder } from './rules-folder.ts';

/** The effect of a revision on the workers that have it. */
export interface Effect {
  readonly isRefused?: boolean;
  /** Share of the decisions. */
  readonly overLimit?: number;
  readonly errors?: number;
  readonly noMatch?: number;
  /** Shares of the hits for one domain. */
  readonly domains?: Readonly<Record<string, DomainEffect>>;
}

export type DomainEffect = Pick<Effect, 'overLimit' | 'errors' | 'noMatch'>;

export interface SimulatedWorker {
  readonly id: string;
  /** Undefined for a worker of another make. */
  instance: string | undefined;
  /** The name of its control plane; undefined while it is not connected. */
  plane: string | undefined;
  decisionsPerSecond: number;
  /** How it responds to the version that it is sent. */
  answer: 'take' | 'refuse' | 'ignore';
  /** Reported instead of the revision's real effect. */
  lies: Effect | undefined;
  /** What its callers send, whatever rules it has. */
  callers: Effect;
  /** Whether its store is unreachable. */
  isStoreAway: boolean;
  /** The last version sent on its stream. */
  notified: Snapshot | undefined;
  /** The version that it has; kept across streams. */
  has: Snapshot | undefined;
  ackedAtMs: number;
  /** The version by which it decides, if that is not the accepted one. */
  decides: Snapshot | undefined;
  nacked: string | undefined;
  counted: Counted | undefined;
  /** The tally of its link. */
  tally: Tally | undefined;
  /** Since its start. */
  totals: TotalsMessage;
  /** The address of its connection; different each time. */
  address: string;
  /** The version that it had when it connected. */
  holds: string | undefined;
}

/** A control plane's access to the store: `denied` is read-only. */
export type Reach = 'fine' | 'denied' | 'away';

export interface SimulatedPlane {
  readonly name: string;
  readonly rollout: Rollout;
  readonly cache: SnapshotCache;
  readonly keeper: RecordKeeper;
  readonly workers: ConnectedWorkers;
  /** Answers no peers, and gets no answers from them. */
  isCutOff: boolean;
}

/** A process: its work ends when it is killed, and waits while it is stalled. */
interface Process {
  readonly name: string;
  readonly death: PromiseWithResolvers<void>;
  isDead: boolean;
  cache: SnapshotCache | undefined;
  /** Work that became due while it was stalled. */
  deferred: (() => void)[] | undefined;
}

export interface FleetOptions {
  readonly plan?: string | undefined;
  readonly workers?: number;
  /** Node groups with their own steps, and the number of workers of the first control plane whose id begins with the
   * group's. */
  readonly groups?: readonly {
    readonly name: string;
    readonly steps: string;
    readonly count: number;
    /** The prefix of its workers' ids, if that is not the name. */
    readonly ids?: string;
  }[];
  /** By name of a control plane: its --rollout, if it is not `plan`; '' for none. */
  readonly steps?: ReadonlyMap<string, string>;
  /** Names of the control planes; several are peers. */
  readonly planes?: readonly string[];
  readonly timing?: LeaderTiming;
  readonly effects?: ReadonlyMap<number, Effect>;
  /** Whether a control plane with an empty state directory knows only the newest revision, as with a directory. */
  readonly forgetsHistory?: boolean;
  /** How long a query to the peers takes. */
  readonly peerMs?: number;
  /** For processes, instances and rollouts. A rollout's id determines the workers that it chooses. */
  readonly drawId?: () => string;
  readonly onStep?: RolloutDeps['onStep'];
}

export type SimulatedFleet = Awaited<ReturnType<typeof startSimulatedFleet>>;

export const sharedTiming: LeaderTiming = {
  poll: 1_000,
  renew: 2_000,
  term: 8_000,
  readAgain: 1_000,
};

const encode = loadProtos().rateLimitConfig.serialize;

export async function startSimulatedFleet(
  t: Pick<ExecutionContext, 'teardown'>,
  options: FleetOptions = {},
) {
  const {
    plan: planText = 'canary=10%,hold=60s',
    workers: count = 20,
    planes: names = ['a'],
  } = options;
  const clock = createManualClock();
  const log = createRecordedLog();
  const { groups = [] } = options;
  const store = createRevisionStore(withGroups(revisionOf(1), groups));
  const text = createSimulatedText();
  const events: string[] = [];
  const questions: string[] = [];
  const triggers: string[] = [];
  const planes = new Map<string, SimulatedPlane>();
  const workers: SimulatedWorker[] = [];
  const effects = new Map(options.effects);
  const steps = new Map(options.steps);
  const folder = createRulesFolder(t as ExecutionContext).path;
  const ownTexts = new Map<string, OwnText>();
  const vanished = new Map<string, VanishedWorker[]>();
  const reach = new Map<string, Reach>();
  const delayMs = new Map<string, number>();
  const held = new Map<string, PromiseWithResolvers<void>>();
  const { peerMs = 0, drawId = randomUUID } = options;
  let connections = 0;
  const processes = new Map<string, Process>();
  /** Revisions that a control plane has seen, by its name. */
  const knownIds = new Map<string, Set<string>>();
  /** The record as last read: walks read it in every second. */
  let onRecord: {
    readonly text?: string | undefined;
    readonly record?: RolloutRecord | undefined;
  } = {};
  let series = 0;
  let states = 0;
  const folders = new Map<string, string>();

  /** One object for as long as its stream is open. */
  function nodeOf({ id, instance, address, holds }: SimulatedWorker): NodeIdentity {
    const known = nodes.get(`${id} ${instance}`);
    if (known?.address === address) return known.node;
    const metadata = new Map(instance === undefined ? [] : [[instanceKey, instance]]);
    const node = { id, cluster: '', metadata, holds };
    nodes.set(`${id} ${instance}`, { node, address });
    return node;
  }
  const nodes = new Map<string, { readonly node: NodeIdentity; readonly address: string }>();

  function listOf(name: string): readonly ConnectedWorker[] {
    const reported = new Map(
      workers.flatMap(({ instance, counted }) =>
        instance && counted ? [[instance, counted]] : [],
      ),
    );
    const listed = workers
      .filter(({ plane }) => plane === name)
      .map(
        (worker): ConnectedWorker => ({
          node: nodeOf(worker),
          instance: worker.instance,
          address: worker.address,
          mode: 'sotw',
          sinceMs: 0,
          sent: worker.notified && { version: worker.notified.version, atMs: 0 },
          acked: worker.has && { version: worker.has.version, atMs: 0, sinceMs: worker.ackedAtMs },
          nacked: worker.nacked
            ? { version: worker.nacked, text: 'no such unit', atMs: 0 }
            : undefined,
          wantedVersion: (snapshot) => snapshot.version,
        }),
      );
    return markUnused(listed, reported, clock.monotonicMs());
  }

  /** Like a stream when the snapshots announce a change. */
  function refresh(worker: SimulatedWorker): void {
    const plane = planes.get(worker.plane ?? '');
    if (plane === undefined || processes.get(plane.name)?.deferred) return;
    const current = plane.cache.current(nodeOf(worker));
    if (current === undefined || current.version === worker.notified?.version) return;
    worker.notified = current;
  }

  function answer(worker: SimulatedWorker): void {
    const { notified, has } = worker;
    if (worker.plane === undefined || notified === undefined || worker.answer === 'ignore') return;
    const isRefused = worker.answer === 'refuse' || effects.get(numberOf(notified) ?? 0)?.isRefused;
    if (notified.version === has?.version) worker.nacked = undefined;
    else if (isRefused) worker.nacked = notified.version;
    else {
      worker.has = notified;
      worker.ackedAtMs = clock.monotonicMs();
      worker.nacked = undefined;
    }
  }

  function report(worker: SimulatedWorker): void {
    const { has, instance } = worker;
    const decisions = worker.decisionsPerSecond;
    if (has === undefined || instance === undefined) {
      worker.counted = undefined;
      worker.tally = undefined;
      return;
    }
    const effect = worker.lies ?? effects.get(numberOf(has) ?? 0) ?? {};
    const domains = [...has.resources.keys()];
    const hitsOfDomain = Math.round(decisions / domains.length);
    const ofDomain = (given: DomainEffect | undefined, field: keyof DomainEffect) =>
      Math.round(hitsOfDomain * (given?.[field] ?? 0));
    const failures = Object.entries(effect.domains ?? {}).map(([domain, given]) => ({
      domain,
      errors: ofDomain(given, 'errors'),
      noMatch: ofDomain(given, 'noMatch'),
    }));
    const count = (field: 'overLimit' | 'errors' | 'noMatch') =>
      Math.round(decisions * Math.min(1, (worker.callers[field] ?? 0) + (effect[field] ?? 0))) +
      failures.reduce((sum, each) => sum + (field === 'overLimit' ? 0 : each[field]), 0);
    const { totals } = worker;
    worker.totals = {
      ...totals,
      decisions: totals.decisions + decisions,
      overLimit: totals.overLimit + count('overLimit'),
      errors: totals.errors + count('errors'),
      noMatch: totals.noMatch + count('noMatch'),
    };
    const rules = [...has.resources].flatMap(([domain, resource]) => {
      const given = effect.domains?.[domain];
      const keys = keysOf(resource);
      const failed = ofDomain(given, 'errors') + ofDomain(given, 'noMatch');
      const hits = (hitsOfDomain - failed) / keys.length;
      const overLimit = ofDomain(given, 'overLimit') / keys.length;
      return keys.map((key) => ({ rule: `${domain}.${key}`, hits, overLimit, nearLimit: 0 }));
    });
    const store = {
      kind: 'redis',
      serversAway: worker.isStoreAway ? 1 : 0,
      clockOffsetMs: 0,
      unreachableSeconds: 0,
    };
    worker.tally ??= new Tally({
      ...{ nodeId: worker.id, newSeries: () => String(++series), mostRules: () => 1_000 },
      toOwned: (name) => name,
    });
    worker.tally.add(
      {
        ...{ version: worker.decides?.version ?? has.version, totals: worker.totals, store, rules },
        ...{ seconds: 1, otherRuleCount: 0, unmatched: [] },
        failures: { domains: failures },
      },
      clock.monotonicMs(),
    );
    worker.counted = worker.tally.counted;
  }

  function run(process: Process, task: () => void): void {
    if (process.isDead) return;
    if (process.deferred === undefined) task();
    else process.deferred.push(task);
  }

  function die(process: Process): void {
    process.isDead = true;
    planes.delete(process.name);
    process.death.resolve();
  }

  function reachOf({ name }: Process): Reach {
    return text.mode === 'fine' ? (reach.get(name) ?? 'fine') : text.mode;
  }

  function canRead(known: ReadonlySet<string> | undefined, id: string): boolean {
    return !options.forgetsHistory || known?.has(id) === true;
  }

  /** The store from the point of view of one process. */
  function storeFor(process: Process): ConfigStore {
    /** Delivered late, and only the newest. */
    let late: Revision | undefined;
    let notify: (revision: Revision) => void = () => {};
    const isAway = () => reach.get(process.name) === 'away';
    function deliver(): void {
      const isNever = delayMs.get(process.name) === Number.POSITIVE_INFINITY;
      if (process.isDead || isAway() || isNever || late === undefined) return;
      const revision = late;
      late = undefined;
      known.add(revision.id);
      notify(revision);
    }
    const known = knownIds.get(process.name) ?? new Set();
    knownIds.set(process.name, known);
    return {
      ...store,
      async read() {
        if (isAway()) throw new Error('no route to it');
        const revision = await store.read();
        known.add(revision.id);
        return revision;
      },
      watch(onRevision) {
        notify = onRevision;
        const stop = store.watch((revision) => {
          late = revision;
          const wait = delayMs.get(process.name) ?? 0;
          if (Number.isFinite(wait) && wait > 0) clock.after(wait, () => run(process, deliver));
          else run(process, deliver);
        });
        // A store polls at least once a second.
        const end = repeatAfter(clock, 1_000, () => {
          if (isAway()) return;
          if ((delayMs.get(process.name) ?? 0) === 0) run(process, deliver);
        });
        void process.death.promise.then(() => {
          stop();
          end();
        });
        void store.read().then((revision) => {
          late = revision;
        });
        return () => {
          stop();
          end();
        };
      },
      async readRevision(id) {
        const wait = held.get(`store ${process.name}`);
        if (wait !== undefined) await wait.promise;
        return canRead(known, id) ? store.readRevision(id) : undefined;
      },
      async locate(id, newest) {
        const wait = held.get(`store ${process.name}`);
        if (wait !== undefined) await wait.promise;
        return store.locate(id, newest);
      },
      async trigger() {
        triggers.push(process.name);
        const wait = held.get(`store ${process.name}`);
        if (wait !== undefined) await wait.promise;
        deliver();
      },
    };
  }

  /** The shared record from the point of view of one process. */
  function textFor(process: Process): SharedText {
    const never = new Promise<never>(() => {});
    return {
      ...text,
      async read() {
        if (process.isDead) return never;
        if (reachOf(process) === 'away') throw new Error('no route to it');
        return text.read();
      },
      async swap(before, given) {
        const wait = held.get(`record ${process.name}`);
        if (wait !== undefined) await wait.promise;
        if (process.isDead) return never;
        if (reachOf(process) === 'away') throw new Error('no route to it');
        if (reachOf(process) === 'denied') return { kind: 'denied', reason: 'may only read' };
        const when = text.onWrite?.(process.name, given);
        if (when === 'after') await text.swap(before, given);
        if (when === undefined) return text.swap(before, given);
        die(process);
        return never;
      },
    };
  }

  async function startPlane(name: string, isFresh = false): Promise<void> {
    const death = Promise.withResolvers<void>();
    const process: Process = { name, death, isDead: false, cache: undefined, deferred: undefined };
    await processes.get(name)?.cache?.close();
    processes.set(name, process);
    const ownClock = {
      ...clock,
      after: (delayMs: number, task: () => void) => clock.after(delayMs, () => run(process, task)),
    };
    if (isFresh || !folders.has(name)) {
      folders.set(name, join(folder, `${name}-${++states}`));
      ownTexts.set(name, createMemoryText());
      knownIds.delete(name);
    }
    const own = ownTexts.get(name) ?? createMemoryText();
    const keeper = new RecordKeeper({
      ...{ shared: textFor(process), timing: options.timing ?? sharedTiming, own },
      ...{ steps: steps.get(name) ?? planText, id: drawId(), name, log, clock: ownClock },
    });
    const ownStore = storeFor(process);
    const build = {
      mergeDomains: false,
      maxResponseBytes: 4 * 1024 * 1024,
    };
    const cache = new SnapshotCache({
      store: ownStore,
      building: new Building({ options: build, encode, clock: ownClock }),
      stateDirectory: folders.get(name) ?? folder,
      allowsRemoval: false,
      memory: () => toRevisionMemory(keeper.state),
      log,
      clock: ownClock,
    });
    const ownWorkers = { list: () => listOf(name), vanished: () => vanished.get(name) ?? [] };
    const rollout = new Rollout({
      reportsOutcomes: false,
      snapshots: cache,
      workers: ownWorkers,
      readCounted: () =>
        new Map(
          workers.flatMap(({ plane, instance, counted }) =>
            plane === name && instance !== undefined && counted ? [[instance, counted]] : [],
          ),
        ),
      keeper,
      askPeers:
        names.length === 1
          ? undefined
          : async (record, undoes) => {
              questions.push(name);
              const answers = names
                .filter((other) => other !== name)
                .map((other) => {
                  const peer = planes.get(other);
                  const isAway =
                    peer?.isCutOff || planes.get(name)?.isCutOff || processes.get(other)?.deferred;
                  return peer === undefined || isAway
                    ? { url: other, error: 'refused', last: undefined }
                    : {
                        url: other,
                        value: structuredClone<RolloutFacts>(
                          peer.rollout.answerPeer(record, undoes),
                        ),
                      };
                });
              if (peerMs > 0) {
                const { promise, resolve } = Promise.withResolvers<void>();
                ownClock.after(peerMs, resolve);
                await promise;
              }
              return answers;
            },
      store: ownStore,
      drawId,
      onEvent: ({ what }) => events.push(what),
      ...(options.onStep && { onStep: options.onStep }),
      log,
      clock: ownClock,
    });
    process.cache = cache;
    await Promise.race([keeper.start(), process.death.promise]);
    if (process.isDead) return;
    await cache.start();
    cache.onChange(() => {
      for (const worker of workers) if (worker.plane === name) refresh(worker);
    });
    rollout.start();
    const plane = { name, rollout, cache, keeper, workers: ownWorkers, isCutOff: false };
    planes.set(name, plane);
    vanished.set(name, []);
    t.teardown(async () => {
      if (!process.isDead) await Promise.race([rollout.stop(), process.death.promise]);
      await cache.close();
    });
  }

  function leaveAll(name: string, next: string | undefined): void {
    planes.delete(name);
    for (const worker of workers) {
      if (worker.plane !== name) continue;
      worker.plane = undefined;
      if (next !== undefined) connect(worker, next);
    }
  }

  function connect(worker: SimulatedWorker, plane: string): void {
    worker.plane = plane;
    worker.address = `10.0.0.1:${++connections}`;
    worker.holds = worker.has?.version;
    const fresh = { notified: worker.has, nacked: undefined, counted: undefined, tally: undefined };
    Object.assign(worker, fresh);
    const gone = vanished.get(plane) ?? [];
    vanished.set(
      plane,
      gone.filter(({ instance, node }) =>
        instance === undefined
          ? worker.instance !== undefined || node.id !== worker.id
          : instance !== worker.instance,
      ),
    );
    refresh(worker);
  }

  const fleet = {
    clock,
    log,
    /** The entries of the audit log. */
    events,
    /** The names of the control planes that queried their peers, once for each query. */
    questions,
    /** The names of the control planes that requested a poll of the store, once for each. */
    triggers,
    store,
    text,
    /** By name of a control plane: its --rollout, if it differs from the others'; '' for none. */
    steps,
    planes,
    workers,
    effects,
    /** By name of a control plane; `fine` if it is missing. Outlives its process. */
    reach,
    /** By name of a control plane: how long it does not notice a new revision. */
    delayMs,
    /** Store reads and record writes that wait: `store NAME` and `record NAME` of a control plane. */
    held,
    /** The first control plane. */
    get plane() {
      const [first] = planes.values();
      if (first === undefined) throw new Error('no control plane is running');
      return first;
    },
    addWorker(given: Partial<SimulatedWorker> & { readonly id: string }) {
      const worker: SimulatedWorker = {
        ...{ instance: drawId(), plane: undefined, address: '', decisionsPerSecond: 200 },
        ...{ answer: 'take', lies: undefined, callers: {}, isStoreAway: false },
        ...{
          notified: undefined,
          has: undefined,
          decides: undefined,
          ackedAtMs: 0,
          holds: undefined,
        },
        ...{ nacked: undefined, counted: undefined, tally: undefined, totals: toTotals(undefined) },
        ...given,
      };
      workers.push(worker);
      if (given.plane !== undefined) connect(worker, given.plane);
      return worker;
    },
    connect,
    /** `how`: with a goodbye, or as a broken connection. */
    disconnect(worker: SimulatedWorker, how: 'goodbye' | 'broken') {
      const { plane, has, instance, address, id } = worker;
      if (plane === undefined) return;
      worker.plane = undefined;
      if (how === 'goodbye') return;
      // Another one with its id is connected, as in the registry of workers.
      if (
        instance === undefined &&
        workers.some(
          (each) => each.plane === plane && each.id === id && each.instance === undefined,
        )
      )
        return;
      const acked = has && { version: has.version, atMs: 0 };
      const goneAtMs = clock.monotonicMs();
      vanished.get(plane)?.push({
        ...{ node: nodeOf(worker), instance, address, goneAtMs },
        ...{
          sent: worker.notified && { version: worker.notified.version, atMs: 0 },
          acked,
          nacked: undefined,
        },
      });
    },
    /** `isFresh`: with an empty state directory. */
    startPlane,
    /** Like SIGTERM: its workers connect to `next`. */
    async stopPlane(name: string, next?: string) {
      const plane = planes.get(name);
      const process = processes.get(name);
      const stopping = plane?.rollout.stop();
      await fleet.settle();
      await Promise.race([stopping, process?.death.promise]);
      if (process !== undefined) die(process);
      leaveAll(name, next);
      await plane?.cache.close();
    },
    /** Like SIGKILL. */
    killPlane(name: string, next?: string) {
      const process = processes.get(name);
      if (process !== undefined) die(process);
      leaveAll(name, next);
    },
    /** Like SIGSTOP, until it continues. */
    standStill(name: string) {
      const process = processes.get(name);
      if (process !== undefined) process.deferred ??= [];
    },
    resume(name: string) {
      const process = processes.get(name);
      const due = process?.deferred ?? [];
      if (process !== undefined) process.deferred = undefined;
      for (const task of due) task();
      for (const worker of workers) if (worker.plane === name) refresh(worker);
    },
    /** Advances second by second. */
    async pass(count: number) {
      for (let second = 0; second < count; second++) {
        for (const worker of workers) {
          answer(worker);
          report(worker);
        }
        // Work that is due at different moments of a second is done in order.
        for (let part = 0; part < 4; part++) {
          clock.advance(250);
          await fleet.settle();
        }
      }
      for (const worker of workers) answer(worker);
    },
    /** Waits until no work is left at this moment. */
    async settle() {
      for (let round = 0; round < 3; round++) {
        for (const { name, keeper } of planes.values()) {
          if (held.has(`record ${name}`)) continue;
          await Promise.race([keeper.settled(), processes.get(name)?.death.promise]);
        }
        await new Promise(setImmediate);
      }
    },
    /** The workers that have this revision. */
    having: (number: number) =>
      workers.filter(({ has }) => has?.resources.has(`revision-${number}`)),
    /** The record as stored beside the rules. */
    readRecord() {
      if (text.content !== onRecord.text) {
        const read = text.content === undefined ? undefined : parseRecord(text.content);
        onRecord = { text: text.content, record: read?.ok ? read.record : undefined };
      }
      return onRecord.record;
    },
  };
  for (const name of names) await startPlane(name);
  for (let index = 0; index < count; index++) {
    fleet.addWorker({ id: `worker-${index}`, plane: names[index % names.length] ?? 'a' });
  }
  for (const group of groups) {
    for (let index = 0; index < group.count; index++) {
      fleet.addWorker({ id: `${group.name}-${index}`, plane: names[0] });
    }
  }
  // The workers must have connected after a start.
  await fleet.pass(8);
  return fleet;
}

/** Such as `k` and `k1`, in their encoded form: each after a tag and its length. */
function keysOf({ any }: Resource): readonly string[] {
  return any.toString('latin1').match(/(?<=\n\W)k\d*(?=\W)/g) ?? [];
}

/** The revision with these groups of nodes. */
export function withGroups(
  revision: Revision,
  groups: NonNullable<FleetOptions['groups']>,
): Revision {
  if (groups.length === 0) return revision;
  const list = groups.map(
    ({ name, steps, ids = name }) =>
      `  - { name: ${name}, match: { id: '${ids}-*' }, domains: ['*'], rollout: '${steps}' }\n`,
  );
  const text = `groups:\n${list.join('')}  - { name: others, domains: ['*'] }\n`;
  return { ...revision, files: [...revision.files, { path: 'node-groups.yaml', text }] };
}

/** The number of the revision, from its content; undefined for one without rules. */
export function numberOf(snapshot: Snapshot): number | undefined {
  for (const name of snapshot.resources.keys()) {
    const [, number] = /^revision-(\d+)$/.exec(name) ?? [];
    if (number !== undefined) return Number(number);
  }
  return undefined;
}
