// The tracer over the OpenTelemetry SDK for Node. Parents are passed explicitly, so calls need not be tracked through
// the event loop.

import {
  type Context,
  DiagLogLevel,
  diag,
  type Span as OtelSpan,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import {
  CompositePropagator,
  getBooleanFromEnv,
  getNumberFromEnv,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { OTLPTraceExporter as GrpcExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as HttpExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { B3Propagator } from '@opentelemetry/propagator-b3';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import {
  ParentBasedSampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { type BatchOptions, createBoundedExport } from './bounded-export.ts';
import type { ServerSpan, Span, SpanParent, Tracer, TracerDeps, TracerOptions } from './tracer.ts';

/** A request's text may have any size; this much of an attribute is recorded. */
const maxAttributeLength = 4_096;
/** As in the reference (behaviour: spans). */
const schemaUrl = 'https://opentelemetry.io/schemas/1.7.0';
/** Limit of different warnings of the library about its settings that are logged. */
const maxComplaints = 20;

/** The least time between log lines about a slow or unstable receiver. */
const problemIntervalMs = 60_000;

const standardGrpcUrl = 'http://localhost:4317';

type HeaderReader = (name: string) => string | undefined;
const headerGetter: TextMapGetter<HeaderReader> = {
  get: (header, name) => header(name),
  keys: () => [],
};
type HeaderWriter = (name: string, value: string) => void;
const headerSetter: TextMapSetter<HeaderWriter> = {
  set: (setHeader, name, value) => setHeader(name, value),
};

export function createOtelTracer(
  { protocol, samplingRate, resource }: TracerOptions,
  { log, clock }: TracerDeps,
): Tracer {
  const passOn = passingOnComplaints(log);
  passOn();
  const failures = createRepeatedLog({
    clock,
    intervalMs: problemIntervalMs,
    again: 'when-changed',
    write: (reason) =>
      log.warning(`Traces do not reach their receiver: ${reason}; decisions are not affected`),
  });
  const drops = createRepeatedLog({ clock, intervalMs: problemIntervalMs, write: log.warning });
  const onDrop = () => {
    drops.report(
      'Traces are dropped: their receiver does not accept them as fast as they are made; change OTEL_BSP_* or TRACING_SAMPLING_RATE',
    );
  };
  const { processor, hasRoom } = createBoundedExport(
    protocol === 'grpc' ? createGrpcExporter(log) : new HttpExporter(),
    readBatchOptions(),
    {
      onFailure: failures.report,
      onDrop,
      onArrival() {
        const outage = failures.recover();
        if (outage === undefined) return;
        log.notice(`Traces reach their receiver again; ${outage.times} batches were lost`);
      },
    },
  );
  const rootSampler = new TraceIdRatioBasedSampler(samplingRate);
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) {
    log.warning('OTEL_SDK_DISABLED is true: no traces are recorded');
  }
  // With OTEL_LOG_LEVEL the SDK writes warnings to the console, and logs that another logger was replaced.
  diag.disable();
  const sdk = new NodeSDK({
    sampler: new ParentBasedSampler({ root: rootSampler }),
    // Detected here, because the SDK gives detected resources precedence over configured ones.
    autoDetectResources: false,
    resource: defaultResource()
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
      .merge(resourceFromAttributes(resource, { schemaUrl })),
    spanLimits: { attributeValueLengthLimit: maxAttributeLength },
    spanProcessors: [processor],
    // Sends only traces, whatever OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER name.
    metricReaders: [],
    logRecordProcessors: [],
    textMapPropagator: null,
  });
  passOn();
  sdk.start();
  const traceContext: TextMapPropagator = new W3CTraceContextPropagator();
  const propagator: TextMapPropagator = new CompositePropagator({
    propagators: [new B3Propagator(), traceContext],
  });
  let isStopped = false;

  const isRecording = (): boolean => {
    if (isStopped) return false;
    if (hasRoom()) return true;
    onDrop();
    return false;
  };
  // Cached, because the library builds a key for each lookup of a scope.
  const scopes = new Map<string, OtelTracer>();
  const inScope = (scope: string): OtelTracer => {
    let found = scopes.get(scope);
    if (found === undefined) {
      found = trace.getTracer(scope);
      scopes.set(scope, found);
    }
    return found;
  };
  const parentIn = (context: Context): SpanParent => ({
    startSpan: (scope, name, attributes = {}) =>
      toSpan(inScope(scope).startSpan(name, { attributes }, context)),
  });
  const rootParent = parentIn(ROOT_CONTEXT);

  return {
    startServerSpan(scope, name, header): ServerSpan | undefined {
      if (!isRecording()) return undefined;
      const extracted = propagator.extract(ROOT_CONTEXT, header, headerGetter);
      const caller = isUndecided(header) ? decideHere(extracted, rootSampler) : extracted;
      const span = inScope(scope).startSpan(name, { kind: SpanKind.SERVER }, caller);
      if (!span.isRecording()) return undefined;
      return { ...toSpan(span), ...parentIn(trace.setSpan(caller, span)) };
    },
    startClientSpan(scope, name, setHeader) {
      if (!isRecording()) return undefined;
      const span = inScope(scope).startSpan(name, { kind: SpanKind.CLIENT }, ROOT_CONTEXT);
      if (!span.isRecording()) return undefined;
      traceContext.inject(trace.setSpan(ROOT_CONTEXT, span), setHeader, headerSetter);
      return toSpan(span);
    },
    roots: () => (isRecording() ? rootParent : undefined),
    async stop(timeoutMs) {
      isStopped = true;
      const timedOut = Promise.withResolvers<void>();
      const cancel = clock.after(timeoutMs, timedOut.resolve);
      // Failures to send were already logged.
      const sent = sdk.shutdown().catch(() => undefined);
      await Promise.race([sent, timedOut.promise]);
      cancel();
    },
  };
}

/**
 * The gRPC exporter throws for an address that it cannot parse, and quotes it; the HTTP exporter logs a warning and
 * uses the default address.
 */
function createGrpcExporter(log: Log): GrpcExporter {
  try {
    return new GrpcExporter();
  } catch {
    log.warning(
      `tracing: OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an address: write one such as http://collector:4317; traces are sent to ${standardGrpcUrl}`,
    );
    return new GrpcExporter({ url: standardGrpcUrl });
  }
}

/**
 * Whether the sampling decision is ours: B3 without a sampling state leaves it open, but the library reads this as a
 * refusal. `traceparent` always has one, and takes precedence.
 */
function isUndecided(header: (name: string) => string | undefined): boolean {
  if (header('traceparent') !== undefined) return false;
  const single = header('b3');
  if (single !== undefined) return /^[0-9a-f]{16,32}-[0-9a-f]{16}$/.test(single);
  return (
    header('x-b3-traceid') !== undefined &&
    header('x-b3-sampled') === undefined &&
    header('x-b3-flags') !== '1'
  );
}

/** The caller's context, with the decision that a trace beginning here would get. */
function decideHere(caller: Context, sampler: TraceIdRatioBasedSampler): Context {
  const known = trace.getSpanContext(caller);
  if (known === undefined) return caller;
  const { decision } = sampler.shouldSample(ROOT_CONTEXT, known.traceId);
  const isSampled = decision === SamplingDecision.RECORD_AND_SAMPLED;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(caller, { ...known, traceFlags });
}

function toSpan(span: OtelSpan): Span {
  return {
    set: (attributes) => {
      span.setAttributes(attributes);
    },
    end(failure) {
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end();
    },
  };
}

/** The library's defaults, as the standard defines them, for absent or invalid settings. */
function readBatchOptions(): BatchOptions {
  const read = (name: string, least: number, fallback: number): number => {
    const value = getNumberFromEnv(name) ?? fallback;
    return value >= least ? value : fallback;
  };
  const maxQueueSize = read('OTEL_BSP_MAX_QUEUE_SIZE', 1, 2_048);
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(read('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1, 512), maxQueueSize),
    scheduledDelayMillis: read('OTEL_BSP_SCHEDULE_DELAY', 0, 5_000),
    exportTimeoutMillis: read('OTEL_BSP_EXPORT_TIMEOUT', 1, 30_000),
  };
}

/**
 * Logs the library's warnings about OTEL_* settings that it cannot use: each once, without quoted values, which may be
 * a secret header or an address with a password.
 */
function passingOnComplaints(log: Log): () => void {
  const logged = new Set<string>();
  const ignore = () => {};
  const logger = {
    verbose: ignore,
    debug: ignore,
    info: ignore,
    warn(message: string) {
      const text = message.replace(/^([^'"`(]*)['"`(].*['"`)]/s, '$1(...)');
      if (logged.has(text) || logged.size >= maxComplaints) return;
      logged.add(text);
      log.warning(`tracing: ${text}`);
    },
    // Failed exports are logged elsewhere.
    error: ignore,
  };
  return () => {
    diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  };
}
