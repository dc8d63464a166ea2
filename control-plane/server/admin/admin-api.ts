// The dependencies of the admin API's controllers. All exist before the first request; data of the store
// and the workers may come later.
import type { Clock } from '../../../shared/clock.ts';
import type { SharedPlaces } from '../../../shared/places.ts';
import type { RoutedRequest } from '../../../shared/router/index.ts';
import type { JobThread } from '../../../shared/thread/job-thread.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Activity } from '../history/activity/activity.ts';
import type { Audit } from '../history/activity/audit.ts';
import type { Marks } from '../history/last-hour/marks.ts';
import type { Peers } from '../record/peers/peers.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { ConfigStore } from '../store/store.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import type { Scope } from './authorize.ts';
import type { ChangeTurns } from './change-turns.ts';
import type { Events } from './events.ts';
import type { Examine, Reading } from './examination.ts';

export interface AdminApi {
  readonly store: ConfigStore;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** Holds the reports of the workers. */
  readonly fleet: Fleet;
  /** Reads what users and this control plane did lately. */
  readonly activity: Pick<Activity, 'read'>;
  /** Reads and notes the events of the last hour. */
  readonly marks: Pick<Marks, 'note' | 'read'>;
  readonly examine: Examine;
  readonly reading: Reading;
  /** Runs what takes long with large files. */
  readonly thread: JobThread;
  readonly turns: ChangeTurns;
  /** Of answers that hold much memory until they are read. */
  readonly longAnswers: SharedPlaces;
  readonly rollout: Rollout;
  /** Paths of files of the state directory that could not be read, and were renamed. */
  listSetAside(): Promise<readonly string[]>;
  /** Undefined where this is the only control plane. */
  readonly peers: Peers | undefined;
  /** How the clock of this control plane differs from those of the others; undefined where it does not. */
  clockProblem(): string | undefined;
  /** Whether any change may remove most limits. */
  readonly allowsRemoval: boolean;
  /** Where workers' recordings of their decisions are; undefined: there are none. */
  readonly recordings: string | undefined;
  /** In front of the path of a file in its repository: '' or such as `rules/`. */
  readonly repositoryFolder: string;
  /** The address at which files of a revision can be read, with `{file}` (below that folder), `{line}` and `{revision}`; undefined where that is not known. */
  readonly sourceUrl: string | undefined;
  readonly clock: Clock;
  readonly audit: Audit;
  /** The caller of a request that the guard let pass. */
  callerOf(request: RoutedRequest): string;
  /** The rights of the caller. */
  scopeOf(request: RoutedRequest): Scope;
  /** Whether an open stream is allowed to continue. */
  mayGoOn(request: RoutedRequest): boolean;
  readonly events: Events;
  /** The condition that the start still waits for; undefined once the workers are served. */
  awaited(): string | undefined;
  /** The port on which workers get their rules; undefined until it is open. */
  xdsPort(): number | undefined;
  exposeMetrics(): Promise<{ readonly text: string; readonly mediaType: string }>;
}
