// Families that are pulled in addition to the registry's, independent of the mapping: the process metrics of
// Prometheus' clients, and the durations of decisions and of calls to the store's servers.
import { readdir, readFile, stat } from 'node:fs/promises';
import type { Clock } from '../../shared/clock.ts';
import { readMemory } from './process-memory.ts';
import type { Histogram } from './registry.ts';
import type { Family, FamilyType } from './series.ts';
import { SeriesList, type ValueSeries } from './series.ts';

export interface OwnFamilies {
  readonly families: readonly Family[];
  /**
   * Adds new servers, and reads the process' figures again. Never rejects: values that the system does not offer are
   * not exposed.
   */
  refresh(): Promise<void>;
}

export interface OwnFamiliesDeps {
  readonly decisionDuration: Histogram;
  /** The durations of calls by the name of their server. */
  readonly storeCallDurations: ReadonlyMap<string, Histogram>;
  /** Formats the labels of a series: its own, and those of every series. */
  readonly toLabels: (own: Readonly<Record<string, string>>) => string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export function createOwnFamilies(deps: OwnFamiliesDeps): OwnFamilies {
  const { decisionDuration, storeCallDurations, toLabels, clock } = deps;
  const labels = toLabels({});
  const startSeconds = Math.round(clock.wallMs() / 1000 - process.uptime());
  let figures: ProcessFigures = {};

  function family(name: string, type: FamilyType, help: string, read: ValueSeries['read']): Family {
    const series = new SeriesList();
    series.add({ kind: 'value', labels, read });
    return { name, type, help, series };
  }

  const cpuSeconds = (kinds: readonly ('user' | 'system')[]) => () => {
    const usage = process.cpuUsage();
    return kinds.reduce((sum, kind) => sum + usage[kind], 0) / 1e6;
  };
  const decisions: Family = {
    name: 'ratelimit_decision_duration_seconds',
    type: 'histogram',
    help: 'Seconds from the arrival of a ShouldRateLimit call or a /json request until its answer',
    series: new SeriesList(),
  };
  decisions.series.add({ kind: 'timer', labels, read: () => decisionDuration });
  const storeCalls: Family = {
    name: 'ratelimit_store_call_duration_seconds',
    type: 'histogram',
    help: 'Seconds from a write to a server of the store, of all commands of a batch, until its last answer',
    series: new SeriesList(),
  };

  function addNewServers(): void {
    for (const [server, durations] of storeCallDurations) {
      const own = toLabels({ server });
      if (storeCalls.series.get(own) !== undefined) continue;
      storeCalls.series.add({ kind: 'timer', labels: own, read: () => durations });
    }
  }

  return {
    families: [
      decisions,
      storeCalls,
      family(
        'process_cpu_user_seconds_total',
        'counter',
        'User CPU time of the process in seconds',
        cpuSeconds(['user']),
      ),
      family(
        'process_cpu_system_seconds_total',
        'counter',
        'System CPU time of the process in seconds',
        cpuSeconds(['system']),
      ),
      family(
        'process_cpu_seconds_total',
        'counter',
        'User and system CPU time of the process in seconds',
        cpuSeconds(['user', 'system']),
      ),
      family(
        'process_start_time_seconds',
        'gauge',
        'When the process started, in seconds since the Unix epoch',
        () => startSeconds,
      ),
      family(
        'process_resident_memory_bytes',
        'gauge',
        'Resident memory of the process in bytes',
        () => readMemory()?.rss,
      ),
      family(
        'process_virtual_memory_bytes',
        'gauge',
        'Virtual memory of the process in bytes',
        () => figures.virtualBytes,
      ),
      family('process_open_fds', 'gauge', 'Open file descriptors', () => figures.openDescriptors),
      family(
        'process_max_fds',
        'gauge',
        'File descriptors that the process may have open',
        () => figures.maxDescriptors,
      ),
    ],
    async refresh() {
      addNewServers();
      figures = await readProcessFigures();
    },
  };
}

interface ProcessFigures {
  readonly virtualBytes?: number | undefined;
  readonly openDescriptors?: number | undefined;
  readonly maxDescriptors?: number | undefined;
}

/** Only Linux has all values. */
async function readProcessFigures(): Promise<ProcessFigures> {
  const [status, limits, openDescriptors] = await Promise.all([
    readFile('/proc/self/status', 'utf8').catch(() => ''),
    readFile('/proc/self/limits', 'utf8').catch(() => ''),
    countDescriptors().catch(() => undefined),
  ]);
  const kilobytes = toNumber(/^VmSize:\s+(\d+) kB$/m.exec(status)?.[1]);
  return {
    virtualBytes: kilobytes && kilobytes * 1024,
    maxDescriptors: toNumber(/^Max open files\s+(\d+)/m.exec(limits)?.[1]),
    openDescriptors,
  };
}

/**
 * Newer kernels report the number as the folder's size; otherwise the names are counted, which may be as many as
 * connections.
 */
async function countDescriptors(): Promise<number> {
  const { size } = await stat('/proc/self/fd');
  return size > 0 ? size : (await readdir('/proc/self/fd')).length;
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}
