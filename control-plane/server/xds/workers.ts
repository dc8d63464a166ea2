// The connected workers: the versions that each was sent, accepted and refused, and whether it has its rules; also the
// workers whose connection broke.
import type { Clock } from '../../../shared/clock.ts';
import { instanceKey } from '../../../shared/instance-key.ts';
import { owned } from '../../../shared/owned-text.ts';
import type { NodeIdentity, Snapshot } from '../snapshot/snapshot.ts';
import type { DiscoveryMode } from './protocol.ts';

/** Times are wall times in milliseconds since the epoch. */
export interface ConnectedWorker {
  readonly node: NodeIdentity;
  /** One start of a Ratelane worker, as it names itself; undefined for workers of other makes. At most 1,024
   * characters, never ''. */
  readonly instance: string | undefined;
  /** `<host>:<port>` of the stream's connection, which may be a proxy's. */
  readonly address: string;
  readonly mode: DiscoveryMode;
  readonly sinceMs: number;
  /** The last response on this stream. */
  readonly sent: VersionAt | undefined;
  /** The last version that the worker accepted, or reported to hold. */
  readonly acked: VersionAt | undefined;
  /** The last refusal, until a later version is accepted. */
  readonly nacked: Refusal | undefined;
  readonly wantedVersion: WantedVersion;
  /** Whether the worker has acknowledged its version but reports that it decides by another one. */
  readonly isUnused?: boolean;
}

/** The version of the selection that the worker wants; `acked` equals it when the worker is up to date. Undefined when
 * the worker wants nothing. Cheap: read for every worker in every report. */
export type WantedVersion = (snapshot: Snapshot) => string | undefined;

export interface VersionAt {
  readonly version: string;
  /** Wall time, for display. */
  readonly atMs: number;
  /** The moment of `atMs` on the monotonic clock. */
  readonly sinceMs?: number;
}

export interface Refusal {
  /** Undefined when it was sent on an earlier stream. */
  readonly version: string | undefined;
  /** The worker's message; at most 4096 characters. */
  readonly text: string;
  readonly atMs: number;
}

export interface VanishedWorker {
  readonly node: NodeIdentity;
  readonly instance: string | undefined;
  readonly address: string;
  /** The last version offered on the worker's last stream. */
  readonly sent: VersionAt | undefined;
  /** The last version that it accepted. */
  readonly acked: VersionAt | undefined;
  /** The refusal, as for a connected worker. */
  readonly nacked: Refusal | undefined;
  /** A time on the monotonic clock. */
  readonly goneAtMs: number;
}

export interface ConnectedWorkers {
  /** One entry for each stream whose node is known, in the order of arrival. Entries are immutable, except that
   * `wantedVersion` reads the current subscription. */
  list(): readonly ConnectedWorker[];
  /** Workers whose connection broke without a goodbye and that have not reconnected here: the newest 1,000, of the last
   * hour. A worker without an instance counts as reconnected when another connects with its node id. */
  vanished(): readonly VanishedWorker[];
}

export interface WorkerRecord {
  sent(version: string): void;
  acked(version: string): void;
  nacked(version: string | undefined, text: string): void;
  /** Further calls do nothing. */
  left(how: Leaving): void;
}

/** `broke`: the connection ended without a goodbye from the worker, and was not ended here. */
export type Leaving = 'goodbye' | 'broke';

export interface WorkerRegistry extends ConnectedWorkers {
  /** The worker that is connected with this instance. */
  findInstance(instance: string): ConnectedWorker | undefined;
  /** Call only when no worker is connected with this instance. */
  joined(
    node: NodeIdentity,
    address: string,
    mode: DiscoveryMode,
    wantedVersion: WantedVersion,
  ): WorkerRecord;
}

const maxTextLength = 4096;
const maxVanished = 1_000;
const vanishedMs = 3_600_000;

export interface WorkerState {
  readonly state: 'in_force' | 'pending' | 'refused';
  /** The version of the rules that the worker wants; undefined when it wants none, and when there are none
   * yet. */
  readonly expected: string | undefined;
}

/** The only function that decides whether a worker has its rules: the part that it wants of those for its node.
 * `current` is the snapshot for that node. */
export function toWorkerState(
  { acked, nacked, wantedVersion, isUnused }: ConnectedWorker,
  current: Snapshot | undefined,
): WorkerState {
  const expected = current && wantedVersion(current);
  const wantsNothing = current !== undefined && expected === undefined;
  const hasIt = expected !== undefined && acked?.version === expected && isUnused !== true;
  const state = wantsNothing ? 'in_force' : nacked ? 'refused' : hasIt ? 'in_force' : 'pending';
  return { state, expected };
}

/** How long after its acknowledgement a worker may take to report that it uses the version. */
const useMs = 10_000;

/** The workers, each with whether it uses the version that it acknowledged. `reported`: the version that an instance
 * reports to decide by. `nowMs`: on the monotonic clock. */
export function markUnused(
  workers: readonly ConnectedWorker[],
  reported: ReadonlyMap<string, { readonly version: string }>,
  nowMs: number,
): readonly ConnectedWorker[] {
  return workers.map((worker) => {
    const { instance, acked } = worker;
    const version = instance === undefined ? undefined : reported.get(instance)?.version;
    if (version === undefined || acked === undefined || version === acked.version) return worker;
    const { sinceMs = nowMs } = acked;
    return nowMs - sinceMs < useMs ? worker : { ...worker, isUnused: true };
  });
}

/** The instance that the worker sent; undefined for workers of other makes. */
export function toInstance({ metadata }: NodeIdentity): string | undefined {
  return metadata.get(instanceKey) || undefined;
}

export function createWorkerRegistry(clock: Pick<Clock, 'wallMs' | 'monotonicMs'>): WorkerRegistry {
  return new Registry(clock);
}

class Registry implements WorkerRegistry {
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>;
  /** The records in the order of arrival. */
  readonly records = new Set<Connected>();
  /** The newest record of each identity. */
  readonly newest = new Map<string, Connected>();
  /** The workers that have left, the most recent one last. */
  gone: VanishedWorker[] = [];

  constructor(clock: Pick<Clock, 'wallMs' | 'monotonicMs'>) {
    this.clock = clock;
  }

  list(): readonly ConnectedWorker[] {
    return Array.from(this.records, ({ worker }) => worker);
  }

  vanished(): readonly VanishedWorker[] {
    const sinceMs = this.clock.monotonicMs() - vanishedMs;
    this.gone = this.gone.filter(({ goneAtMs }) => goneAtMs > sinceMs);
    return this.gone;
  }

  findInstance(instance: string): ConnectedWorker | undefined {
    return this.newest.get(toInstanceIdentity(instance))?.worker;
  }

  joined(
    node: NodeIdentity,
    address: string,
    mode: DiscoveryMode,
    wantedVersion: WantedVersion,
  ): WorkerRecord {
    const record = new Connected(this, {
      node,
      instance: toInstance(node),
      address,
      mode,
      sinceMs: this.clock.wallMs(),
      sent: undefined,
      acked: undefined,
      nacked: undefined,
      wantedVersion,
    });
    const identity = toIdentity(record.worker);
    this.records.add(record);
    this.newest.set(identity, record);
    this.gone = this.gone.filter((each) => toIdentity(each) !== identity);
    return record;
  }
}

class Connected implements WorkerRecord {
  worker: ConnectedWorker;
  readonly #registry: Registry;

  constructor(registry: Registry, worker: ConnectedWorker) {
    this.#registry = registry;
    this.worker = worker;
  }

  sent(version: string): void {
    this.worker = { ...this.worker, sent: this.#now(version) };
  }

  acked(version: string): void {
    this.worker = { ...this.worker, acked: this.#now(version), nacked: undefined };
  }

  nacked(version: string | undefined, text: string): void {
    const atMs = this.#registry.clock.wallMs();
    this.worker = { ...this.worker, nacked: { version, text: toShortCopy(text), atMs } };
  }

  left(how: Leaving): void {
    const { records, newest, gone, clock } = this.#registry;
    if (!records.delete(this)) return;
    const identity = toIdentity(this.worker);
    // A newer connection of the worker: it reconnected before its old connection was found broken.
    const other = newest.get(identity);
    if (other === this) newest.delete(identity);
    else if (other !== undefined) return;
    if (how === 'goodbye') return;
    const { node, instance, address, sent, acked, nacked } = this.worker;
    gone.push({ node, instance, address, sent, acked, nacked, goneAtMs: clock.monotonicMs() });
    if (gone.length > maxVanished) gone.shift();
  }

  #now(version: string): VersionAt {
    const { clock } = this.#registry;
    return { version, atMs: clock.wallMs(), sinceMs: clock.monotonicMs() };
  }
}

/** A substring would keep the whole text in memory, which may be megabytes. */
function toShortCopy(text: string): string {
  return owned(text.slice(0, maxTextLength));
}

/** A worker without an instance is identified by its node id. */
function toIdentity({ node, instance }: Pick<ConnectedWorker, 'node' | 'instance'>): string {
  return instance === undefined ? `node ${node.id}` : toInstanceIdentity(instance);
}

function toInstanceIdentity(instance: string): string {
  return `instance ${instance}`;
}
