// The connected workers, and the versions that each was sent, accepted and refused.
import type { NodeIdentity, Snapshot } from '../snapshot/snapshot.ts';
import type { DiscoveryMode } from './metrics.ts';

/** Times are wall times in milliseconds since the epoch. */
export interface ConnectedWorker {
  readonly node: NodeIdentity;
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
}

/** The version of the part that the worker wants; `acked` equals it when the worker is up to date.
 * Undefined when it wants nothing. Cheap: read for every worker in every report. */
export type WantedVersion = (snapshot: Snapshot) => string | undefined;

export interface VersionAt {
  readonly version: string;
  readonly atMs: number;
}

export interface Refusal {
  /** Undefined when it was sent on an earlier stream. */
  readonly version: string | undefined;
  /** The worker's message; at most 4096 characters. */
  readonly text: string;
  readonly atMs: number;
}

export interface ConnectedWorkers {
  /** One for each stream whose node is known, in the order of arrival. Each is immutable, but
   * `wantedVersion` reads the current subscription. */
  list(): readonly ConnectedWorker[];
}

export interface WorkerRecord {
  sent(version: string): void;
  acked(version: string): void;
  nacked(version: string | undefined, text: string): void;
  left(): void;
}

export interface WorkerRegistry extends ConnectedWorkers {
  joined(
    node: NodeIdentity,
    address: string,
    mode: DiscoveryMode,
    wantedVersion: WantedVersion,
  ): WorkerRecord;
}

const maxTextLength = 4096;

export function createWorkerRegistry(wallMs: () => number): WorkerRegistry {
  const workers = new Map<WorkerRecord, ConnectedWorker>();
  return {
    list: () => [...workers.values()],
    joined(node, address, mode, wantedVersion) {
      let worker: ConnectedWorker = {
        node,
        address,
        mode,
        sinceMs: wallMs(),
        sent: undefined,
        acked: undefined,
        nacked: undefined,
        wantedVersion,
      };
      const update = (change: Partial<ConnectedWorker>): void => {
        if (!workers.has(record)) return;
        worker = { ...worker, ...change };
        workers.set(record, worker);
      };
      const record: WorkerRecord = {
        sent: (version) => update({ sent: { version, atMs: wallMs() } }),
        acked: (version) => update({ acked: { version, atMs: wallMs() }, nacked: undefined }),
        nacked: (version, text) =>
          update({ nacked: { version, text: toShortCopy(text), atMs: wallMs() } }),
        left: () => workers.delete(record),
      };
      workers.set(record, worker);
      return record;
    },
  };
}

/** A substring would keep the whole text alive, which may be megabytes. */
function toShortCopy(text: string): string {
  return Buffer.from(text.slice(0, maxTextLength)).toString();
}
