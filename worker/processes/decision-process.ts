// One of several processes that decide for a worker: runs serving.ts, receives rules and commands to listen and stop
// from the primary, and reports statistics to it. process-group.ts describes the whole.

import { type Clock, systemClock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import { exitCodes } from '../../shared/exit-codes.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import type { Log } from '../../shared/log.ts';
import { createProgramLog } from '../../shared/program-log.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { createRuleSetBuilder, type RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { stackText } from '../../shared/source-positions.ts';
import { maxSamplesPerSecond, type UnmatchedSample } from '../decision/unmatched-sampler.ts';
import { createLimitedValuesFor } from '../fleet/fleet.ts';
import { createHealth, type Health } from '../health.ts';
import { createProfiler } from '../listen/profiler.ts';
import { measureNode } from '../metrics/node-gauges.ts';
import { createRegistry, type MetricsRegistry } from '../metrics/registry.ts';
import { toRuleSetOptions } from '../rules-source/rule-set-options.ts';
import { createServing, type Serving } from '../serving.ts';
import { parseWorkerSettings, type WorkerSettings } from '../settings.ts';
import { collectStartGarbage } from '../start-garbage.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { startWorkerTracer } from '../tracing.ts';
import { warmUp } from '../warm-up.ts';
import type { DocumentMessage, FromProcess, RulesMessage, ToProcess } from './message.ts';
import { createProcessLog, type ProcessLog } from './process-log.ts';
import { RulesReceiver } from './shared-documents.ts';
import { createStatisticsReporter } from './statistics-report.ts';

/** The channel to the primary. */
export interface PrimaryLink {
  /** Resolves when the message has been sent. */
  send(message: FromProcess): Promise<void>;
  end(exitCode: number): void;
}

export interface DecisionProcess {
  /** Handles messages one at a time, in order. */
  receive(message: ToProcess): void;
  /** Reports the reason to the primary, and exits. */
  fail(error: unknown): void;
}

const reportIntervalMs = 1_000;
const tracerGraceMs = 3_000;
/** Time limit for the last message, in case the primary does not read it. */
const failGraceMs = 1_000;

export function createDecisionProcess(link: PrimaryLink): DecisionProcess {
  const stopping = new AbortController();
  const profiler = createProfiler({ clock: systemClock });
  const profiles = new Map<number, AbortController>();
  let parts: Parts | undefined;
  let last = Promise.resolve();

  async function handle(message: ToProcess): Promise<void> {
    if (message.kind === 'start') {
      parts = await createParts(message, link);
      const { settings, serving } = parts;
      serving
        .connect(stopping.signal)
        .then(() => warmUp({ settings, clock: systemClock }, stopping.signal))
        .then(() => link.send({ kind: 'connected' }))
        .catch((error) => {
          if (!stopping.signal.aborted) fail(error);
        });
      return;
    }
    if (parts === undefined) {
      if (message.kind === 'stop') return link.end(exitCodes.ok);
      throw new Error(`'${message.kind}' came before 'start'`);
    }
    switch (message.kind) {
      case 'document':
        parts.rules.receiveDocument(message);
        break;
      case 'rules':
        await parts.rules.use(message);
        break;
      case 'health':
        parts.health.set('processes', message.healthy);
        break;
      case 'listen': {
        const { hasListened: sharesSocket } = message;
        collectStartGarbage();
        const addresses = await parts.serving.listen(stopping.signal, { sharesSocket });
        parts.log.noteServing();
        await link.send({ kind: 'listening', addresses });
        break;
      }
      case 'profile':
        // Not awaited: it takes long, and other messages must not wait.
        void profile(message);
        break;
      case 'end-profile':
        profiles.get(message.id)?.abort();
        break;
      case 'counters':
        // Not awaited: the store may be slow, and other messages must not wait.
        void answerCounters(parts, message);
        break;
      case 'forget-counters':
        parts.serving.counters.forget(message.asked);
        break;
      case 'stop':
        await stop(parts, message.graceMs);
        break;
    }
  }

  async function profile({ id, of, durationMs }: ToProcess & { readonly kind: 'profile' }) {
    const ending = new AbortController();
    profiles.set(id, ending);
    const result = await profiler[of](durationMs, ending.signal);
    profiles.delete(id);
    if (result !== 'gone') await link.send({ kind: 'profile', id, result });
  }

  async function answerCounters(
    { serving }: Parts,
    { id, asked, reset, timeoutMs }: ToProcess & { readonly kind: 'counters' },
  ): Promise<void> {
    const answer = await serving.counters.ask(asked, reset, timeoutMs);
    await link.send({ kind: 'counters', id, answer });
  }

  async function stop({ serving, reports, tracer }: Parts, graceMs: number): Promise<void> {
    await serving.stop(graceMs);
    await Promise.all([reports.stop(), tracer?.stop(tracerGraceMs)]);
    link.end(exitCodes.ok);
  }

  function fail(error: unknown): void {
    // Listening that the stop has aborted is not a failure.
    if (stopping.signal.aborted && error === stopping.signal.reason) return;
    systemClock.after(failGraceMs, () => link.end(exitCodes.failed));
    link.send({ kind: 'failed', message: toMessage(error) }).then(
      () => link.end(exitCodes.failed),
      () => {},
    );
  }

  return {
    receive(message) {
      if (message.kind === 'stop') {
        stopping.abort(new AppError('cannot_start', 'the process is stopping'));
      }
      last = last.then(() => handle(message)).catch(fail);
    },
    fail,
  };
}

interface Parts {
  readonly settings: WorkerSettings;
  readonly log: ProcessLog;
  readonly health: Health;
  readonly serving: Serving;
  readonly tracer: Tracer | undefined;
  readonly reports: Reports;
  readonly rules: ReceivedRules;
}

async function createParts(
  { environment, number, logsForAll }: ToProcess & { readonly kind: 'start' },
  link: PrimaryLink,
): Promise<Parts> {
  const result = parseWorkerSettings(environment);
  // The primary has already read the same settings without problems.
  if (!result.ok) throw new AppError('cannot_start', result.problems.join('\n'));
  const { settings } = result;
  const clock = systemClock;
  const log = createProcessLog(createProgramLog(settings.log), { number, logsForAll });
  const metrics = createRegistry({
    runtimeNamesMax: settings.stats.runtimeMetricNames,
    // The primary has the same bound, and logs it.
    log: { ...log, warning: log.debug },
  });
  measureNode({ metrics, clock });
  const health = createHealth({ requireConfig: false, isShared: true });
  const tracer = await startWorkerTracer(settings.tracing, { log, clock });
  let unmatched: UnmatchedSample[] = [];
  const limited = createLimitedValuesFor(settings, clock);
  const recording =
    settings.recording.path === '' ? undefined : await createRecording(settings, metrics, log);
  const serving = await createServing({
    settings,
    health: reportingStore(health, link),
    metrics,
    onUnmatched(sample) {
      // Bounded, since reports may be late.
      if (unmatched.length < maxSamplesPerSecond) unmatched.push(sample);
    },
    observer: limited,
    recorder: recording?.recorder,
    log,
    clock,
    tracer,
  });
  const reporter = createStatisticsReporter(metrics);
  const reports = startReports(clock, async () => {
    const description = serving.describe();
    let share = limited?.drainShare();
    for (const statistics of reporter.receive()) {
      const samples = unmatched;
      unmatched = [];
      await link.send({
        kind: 'report',
        statistics,
        unmatched: samples,
        limited: share,
        recorded: recording?.buffer.drain(),
        description,
      });
      // Sent with the decisions that it includes: a later share would be ahead of them.
      share = undefined;
    }
  });
  const rules = new ReceivedRules({ settings, log, serving });
  return { settings, log, health, serving, tracer, reports, rules };
}

/** Loaded only if decisions are recorded. */
async function createRecording(settings: WorkerSettings, metrics: MetricsRegistry, log: Log) {
  const { createRecordBuffer } = await import('../recording/record-buffer.ts');
  const { createRecorderFor } = await import('../recording/recording.ts');
  const buffer = createRecordBuffer(metrics.counter('ratelimit.recording.dropped'));
  return { buffer, recorder: createRecorderFor({ settings, log, clock: systemClock }, buffer) };
}

/** Builds the rules of received documents; decisions continue meanwhile. */
class ReceivedRules {
  readonly #deps: Pick<Parts, 'log' | 'serving'>;
  readonly #receiver = new RulesReceiver();
  readonly #builder: RuleSetBuilder;

  constructor({ settings, ...deps }: Pick<Parts, 'settings' | 'log' | 'serving'>) {
    this.#deps = deps;
    // The primary has already logged the warnings.
    this.#builder = createRuleSetBuilder({ ...toRuleSetOptions(settings), warnsOfStops: false });
  }

  receiveDocument(message: DocumentMessage): void {
    this.#receiver.receiveDocument(message);
  }

  async use(message: RulesMessage): Promise<void> {
    const { log, serving } = this.#deps;
    const { atMs } = message;
    const documents = this.#receiver.receiveRules(message);
    const built = await runInSlices(this.#builder.build(documents, atMs));
    if (built.ok) serving.useRules({ ruleSet: built.ruleSet, documents, atMs });
    else {
      log.error(`Rules that the primary accepted were refused: ${formatProblems(built.problems)}`);
    }
  }
}

/** Reports each change of the store's health to the primary. */
function reportingStore(health: Health, link: PrimaryLink): Health {
  return {
    get healthy() {
      return health.healthy;
    },
    set(component, healthy) {
      health.set(component, healthy);
      if (component === 'store') void link.send({ kind: 'store', healthy });
    },
    onChange: (listener) => health.onChange(listener),
    components: () => health.components(),
  };
}

interface Reports {
  /** Sends a last report. */
  stop(): Promise<void>;
}

/** Sends the first report immediately, and each next one after the last was sent, so that they never accumulate. */
function startReports(clock: Clock, report: () => Promise<void>): Reports {
  let isStopped = false;
  let cancel = () => {};
  let current = Promise.resolve();
  const reportOn = () => {
    current = report().then(() => {
      if (!isStopped) cancel = clock.after(reportIntervalMs, reportOn);
    });
  };
  reportOn();
  return {
    async stop() {
      isStopped = true;
      cancel();
      await current;
      await report();
    },
  };
}

function toMessage(error: unknown): string {
  if (error instanceof AppError || !(error instanceof Error)) return errorText(error);
  return stackText(error);
}
