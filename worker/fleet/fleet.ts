// Composes the worker's link to the control plane, if it is configured.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { toAgreement } from '../agreement.ts';
import { storeKinds } from '../counters/store-kinds.ts';
import type { CounterAccess } from '../decision/counter-access.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { MetricsRegistry } from '../metrics/registry.ts';
import type { RulesSource } from '../rules-source/source.ts';
import type { WorkerSettings } from '../settings.ts';
import type { ReadToken } from '../token-file.ts';
import { LimitedValues } from './limited-values.ts';
import type { Link } from './link.ts';

export interface FleetDeps {
  readonly settings: WorkerSettings;
  /** Identifies this start of the worker. */
  readonly instance: string;
  readonly metrics: MetricsRegistry;
  readonly limited: LimitedValues;
  readonly source: RulesSource;
  readonly readToken: ReadToken | undefined;
  /** The counters of the serving part, which is created later. */
  readonly counters: () => CounterAccess | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

export interface WorkerLink extends Pick<Link, 'start' | 'describe' | 'stop'> {
  /** Reports a sample of a descriptor without a rule. */
  noteUnmatched(sample: UnmatchedSample): void;
}

/** Undefined without a link. */
export function createLimitedValuesFor(
  { config, xds }: Pick<WorkerSettings, 'config' | 'xds'>,
  clock: Clock,
): LimitedValues | undefined {
  if (config.source !== 'xds' || !xds.link.enabled) return undefined;
  return new LimitedValues(clock, xds.link.values !== 'none');
}

/** Loads the modules that only a worker with a link needs. */
export async function createLinkFor(deps: FleetDeps): Promise<WorkerLink> {
  const { settings, instance, metrics, limited, source, counters, log, clock } = deps;
  const { xds, counting, limits } = settings;
  const { isShared, needsServer } = storeKinds[counting.backend];
  const { Link } = await import('./link.ts');
  const { LinkReports } = await import('./link-report.ts');
  const { openManagementStream } = await import('../management-stream.ts');
  const { toXdsSourceOptions } = await import('../rules-source/xds-source-options.ts');
  const { loadFleetLink } = await import('../../shared/wire/fleet.ts');
  const reports = new LinkReports({
    metrics,
    limited,
    values: xds.link.values,
    storeKind: counting.backend,
    version: () => source.version?.() ?? '',
    clock,
  });
  const link = new Link({
    server: toXdsSourceOptions(settings, Math.random, deps.readToken).servers[0],
    method: loadFleetLink(),
    openStream: openManagementStream,
    hello: {
      nodeId: xds.nodeId,
      instance,
      agreement: toAgreement(settings).hash,
      countsAlone: !isShared,
      allowsReset: xds.link.allowsReset,
      values: { none: 0, hashed: 1, plain: 2 }[xds.link.values],
      failureMode: needsServer ? counting.failureMode : '',
      shadowMode: limits.shadowMode,
      awaitsAnswers: true,
    },
    reports,
    counters,
    onLost: (server, reason) => source.lose?.(server, reason),
    log,
    clock,
    random: Math.random,
    processes: settings.processes.count,
  });
  source.onServer?.((server) => link.follow(server));
  return {
    start: () => link.start(),
    describe: () => link.describe(),
    stop: () => link.stop(),
    noteUnmatched: (sample) => reports.noteUnmatched(sample),
  };
}
