// The worker's statistics: the registry, the enabled outputs, and their intervals.

import { type Clock, repeatAfter, systemClock } from '../../shared/clock.ts';
import type { LineOutput } from '../../shared/line-output.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import type { HttpListener } from '../listen/plain-http-server.ts';
import type { Tags } from '../metrics.ts';
import { createDefaultMapping } from './default-mapping.ts';
import { createJsonFormat } from './json-format.ts';
import {
  countLines,
  createLineSink,
  droppedLinesName,
  type LineReceiverDeps,
  type LineTransport,
  type MetricsSink,
} from './line-sink.ts';
import { readMappingFile } from './mapping-file.ts';
import { countReservedTags, untaggedName } from './metric-name.ts';
import { measureNode } from './node-gauges.ts';
import { createPullEndpoint, type PullTarget } from './pull-endpoint.ts';
import type { MetricsRegistry } from './registry.ts';
import { createRegistry } from './registry.ts';
import { createStatsdFormat } from './statsd-format.ts';
import { createTaggedFormat, type NameRewrite } from './tagged-format.ts';
import { TcpLines } from './tcp-lines.ts';
import { createUdpLines } from './udp-lines.ts';

/** The least time between log lines about a lost receiver. */
const lossIntervalMs = 60_000;

/** The receiver of pushed statistics (behaviour: pushed-lines). */
export interface PushTarget {
  readonly protocol: 'tcp' | 'tcp4' | 'tcp6' | 'udp' | 'udp4' | 'udp6';
  readonly host: string;
  readonly port: number;
}

/** The receiver of statistics with tags, over UDP (behaviour: tagged-lines). */
export interface TaggedTarget {
  readonly host: string;
  readonly port: number;
  readonly rewrites: readonly NameRewrite[];
}

/** The enabled outputs, in any combination (behaviour: independent-outputs). */
export interface StatisticsOptions {
  readonly push: PushTarget | undefined;
  readonly tagged: TaggedTarget | undefined;
  readonly pull: PullTarget | undefined;
  /** The output for JSON lines, used when no other output is on (behaviour: independent-outputs). */
  readonly lines: LineOutput | undefined;
  readonly flushIntervalMs: number;
  readonly extraTags: Tags;
  /** RUNTIME_METRIC_NAMES_MAX (behaviour: bounded-metric-names). */
  readonly runtimeNamesMax: number;
}

export interface StatisticsDeps {
  readonly options: StatisticsOptions;
  readonly log: Log;
  readonly clock: Clock;
}

/** Observations of timers are sent at least this often (behaviour: pushed-lines). */
const timerIntervalMs = 1000;

export class Statistics {
  readonly #deps: StatisticsDeps;
  readonly #extraTags;
  readonly #flushIntervalMs;
  readonly metrics;
  #sinks: MetricsSink[] = [];
  #endpoint: HttpListener | undefined;
  #stopMeasuring = () => {};
  #cancelFlush = () => {};
  #cancelTimers = () => {};

  constructor(deps: StatisticsDeps) {
    this.#deps = deps;
    this.#extraTags = deps.options.extraTags;
    this.#flushIntervalMs = deps.options.flushIntervalMs;
    this.metrics = createRegistry({ runtimeNamesMax: deps.options.runtimeNamesMax, log: deps.log });
    const reserved = countReservedTags(deps.options.extraTags);
    if (reserved > 0) this.metrics.counter(untaggedName).add(reserved);
  }

  #flush(): void {
    this.metrics.prepareReading();
    for (const sink of this.#sinks) {
      sink.flushTimers();
      sink.flush();
    }
  }

  /** Opens the outputs and starts sending. Rejects with AppError `cannot_start` when the pull endpoint cannot start. */
  async start(): Promise<void> {
    const { pull } = this.#deps.options;
    if (pull !== undefined) {
      const mapping =
        (pull.mapperFile === ''
          ? undefined
          : await readMappingFile(pull.mapperFile, pull.mapperSetting, this.#deps.log)) ??
        createDefaultMapping(pull.responseTimeInMs);
      this.#endpoint = createPullEndpoint({
        registry: this.metrics,
        target: pull,
        mapping,
        extraTags: this.#extraTags,
        log: this.#deps.log,
        clock: this.#deps.clock,
      });
      await this.#endpoint.start();
    }
    // The event loop is delayed in real time, whatever clock the worker has.
    this.#stopMeasuring = measureNode({ metrics: this.metrics, clock: systemClock });
    this.#sinks = createSinks(this.metrics, this.#deps.options, {
      log: this.#deps.log,
      clock: this.#deps.clock,
    });
    if (this.#sinks.length === 0) return;
    this.#cancelFlush = repeatAfter(this.#deps.clock, this.#flushIntervalMs, () => this.#flush());
    if (this.#flushIntervalMs > timerIntervalMs) {
      this.#cancelTimers = repeatAfter(this.#deps.clock, timerIntervalMs, () => {
        for (const sink of this.#sinks) sink.flushTimers();
      });
    }
  }

  /** Sends everything once more, for at most `graceMs`, and closes the outputs. Idempotent. */
  async stop(graceMs: number): Promise<void> {
    this.#cancelFlush();
    this.#cancelTimers();
    this.#stopMeasuring();
    const closing = this.#sinks;
    this.#flush();
    this.#sinks = [];
    await Promise.all([
      ...closing.map((sink) => sink.close(graceMs)),
      this.#endpoint?.stop(graceMs),
    ]);
  }
}

function createSinks(
  registry: MetricsRegistry,
  options: StatisticsOptions,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): MetricsSink[] {
  const { push, tagged, pull, lines, extraTags, flushIntervalMs } = options;
  const sinks: MetricsSink[] = [];
  const dropped = registry.counter(droppedLinesName);
  const every = `every ${flushIntervalMs}ms`;
  const toTarget = ({ host, port, protocol }: PushTarget) => {
    const receiver = `${host}:${port} (${protocol})`;
    const family = protocol.endsWith('4') ? 4 : protocol.endsWith('6') ? 6 : 0;
    const losses = createRepeatedLog({
      clock,
      intervalMs: lossIntervalMs,
      again: 'when-changed',
      write: (reason) =>
        log.warning(
          `Statistics do not reach ${receiver}: ${reason}; trying again, decisions are not affected (DISABLE_STATS=true turns statistics off)`,
        ),
    });
    const onBack = () => {
      if (losses.recover() !== undefined) log.notice(`Statistics reach ${receiver} again`);
    };
    log.info(`Statistics are pushed to ${receiver} ${every}`);
    const onDropped = (lines: number) => dropped.add(lines);
    return { host, port, family, clock, onLost: losses.report, onBack, onDropped } as const;
  };
  if (push !== undefined) {
    const target = toTarget(push);
    const isUdp = push.protocol.startsWith('udp');
    const transport = isUdp ? createUdpLines(target) : new TcpLines(target);
    const format = createStatsdFormat(extraTags);
    sinks.push(createLineSink({ registry, format, transport }));
  }
  if (tagged !== undefined) {
    const transport = createUdpLines(toTarget({ ...tagged, protocol: 'udp' }));
    const format = createTaggedFormat({ rewrites: tagged.rewrites, tags: extraTags });
    sinks.push(createLineSink({ registry, format, transport }));
  }
  if (lines !== undefined) {
    const format = createJsonFormat(extraTags, () => clock.wallMs());
    const transport = createOutputLines(lines, (count) => dropped.add(count));
    sinks.push(createLineSink({ registry, format, transport }));
    log.info(`Statistics are written to standard output ${every}`);
  }
  if (sinks.length === 0 && pull === undefined) {
    log.info('Statistics are available on the debug port only');
  }
  return sinks;
}

/**
 * Writes to an output of the process when statistics have no receiver. It stays open; buffered lines are written when
 * the process ends.
 */
function createOutputLines(
  output: LineOutput,
  onDropped: LineReceiverDeps['onDropped'],
): LineTransport {
  return {
    get ready() {
      return output.ready;
    },
    send(lines) {
      const before = output.droppedCount;
      output.write(lines);
      if (output.droppedCount > before) onDropped(countLines(Buffer.from(lines)));
    },
    close: async () => {},
  };
}
