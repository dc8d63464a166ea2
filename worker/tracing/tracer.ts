// The interface to tracing: starting, describing and ending spans. Without a tracer no library is loaded and no object
// is created. tracing/otel-tracer.ts records and sends spans.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

export type SpanAttributes = Readonly<Record<string, string | number>>;

/** One timed piece of work. Every span must be ended exactly once. */
export interface Span {
  set(attributes: SpanAttributes): void;
  /** `failure` is human-readable and marks the span as failed. */
  end(failure?: string): void;
}

/** The parent of further spans: a trace. */
export interface SpanParent {
  /** `scope` names the part of the program. */
  startSpan(scope: string, name: string, attributes?: SpanAttributes): Span;
}

export type ServerSpan = Span & SpanParent;

/** Never throws, never blocks, and bounds its memory. */
export interface Tracer {
  /**
   * Starts the span of an incoming call: continues the trace that its headers name (B3, or W3C trace context, which
   * takes precedence), or begins one. `header` returns a header's first value, by its lower-case name. Undefined when
   * the trace is not recorded: nothing below the span is recorded then.
   */
  startServerSpan(
    scope: string,
    name: string,
    header: (name: string) => string | undefined,
  ): ServerSpan | undefined;
  /**
   * Starts the span of a call by this process, in a new trace. `setHeader` sets the headers by which its receiver
   * continues that trace (W3C trace context). Undefined when it is not recorded.
   */
  startClientSpan(
    scope: string,
    name: string,
    setHeader: (name: string, value: string) => void,
  ): Span | undefined;
  /**
   * The parent for work without a caller's trace: each span begins a new trace. Undefined when none is recorded at the
   * moment.
   */
  roots(): SpanParent | undefined;
  /** Sends the recorded spans, for at most `timeoutMs`; nothing is recorded from then on. */
  stop(timeoutMs: number): Promise<void>;
}

export interface TracerOptions {
  /** OTLP over HTTP with protobuf bodies, or over gRPC. */
  readonly protocol: 'http' | 'grpc';
  /** The share of the traces without a parent that is recorded, 0 to 1. */
  readonly samplingRate: number;
  /** The attributes of the program that makes the spans, such as `service.name`. */
  readonly resource: SpanAttributes;
}

export interface TracerDeps {
  readonly log: Log;
  readonly clock: Clock;
}
