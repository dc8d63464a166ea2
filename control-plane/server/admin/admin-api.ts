// The dependencies of the admin API's controllers. All exist before the first request; data from the store and the
// workers may arrive later.
import type { Clock } from '../../../shared/clock.ts';
import type { RoutedRequest } from '../../../shared/router/index.ts';
import type { JobThread } from '../../../shared/thread/job-thread.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Activity } from '../history/activity/activity.ts';
import type { Audit } from '../history/activity/audit.ts';
import type { Marks } from '../history/last-hour/marks.ts';
import type { Peers } from '../record/peers/peers.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { SharedSemaphore } from '../store/semaphore.ts';
import type { ConfigStore } from '../store/store.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import type { RouteScope } from './authorize.ts';
import type { ChangeTurns } from './change-turns.ts';
import type { Events } from './events.ts';
import type { Examine, Reading } from './examination.ts';

export interface AdminApi {
  readonly store: ConfigStore;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** Holds the reports of the workers. */
  readonly fleet: Fleet;
  /** Reads recent actions of users and of this control plane. */
  readonly activity: Pick<Activity, 'read'>;
  /** Reads and adds events of the last hour. */
  readonly marks: Pick<Marks, 'note' | 'read'>;
  readonly examine: Examine;
  readonly reading: Reading;
  /** Runs long jobs with large files. */
  readonly thread: JobThread;
  readonly turns: ChangeTurns;
  /** Limits the answers that occupy much memory until they are read. */
  readonly longAnswers: SharedSemaphore;
  readonly rollout: Rollout;
  /** Paths of unreadable files of the state directory, which were renamed. */
  listSetAside(): Promise<readonly string[]>;
  /** Undefined if there is only one control plane. */
  readonly peers: Peers | undefined;
  /** How the clock of this control plane differs from those of the others; undefined if it does not. */
  clockProblem(): string | undefined;
  /** Whether any change may remove most limits. */
  readonly allowsRemoval: boolean;
  /** The directory of workers' recordings of their decisions; undefined if absent. */
  readonly recordings: string | undefined;
  /** The prefix of a file's path in its repository: '' or, for example, `rules/`. */
  readonly repositoryFolder: string;
  /** The address of a file of a revision, with the placeholders `{file}` (below that folder), `{line}` and
   * `{revision}`; undefined if it is unknown. */
  readonly sourceUrl: string | undefined;
  readonly clock: Clock;
  readonly audit: Audit;
  /** The caller of a request that the guard admitted. */
  callerOf(request: RoutedRequest): string;
  /** The rights of the caller. */
  scopeOf(request: RoutedRequest): RouteScope;
  /** Whether an open stream is allowed to continue. */
  mayGoOn(request: RoutedRequest): boolean;
  readonly events: Events;
  /** The condition that the start is still waiting for; undefined once workers are served. */
  awaited(): string | undefined;
  /** The port that serves rules to workers; undefined until it is open. */
  xdsPort(): number | undefined;
  exposeMetrics(): Promise<{ readonly text: string; readonly mediaType: string }>;
}
