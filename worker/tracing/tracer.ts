// The interface to tracing: spans are started, described and ended. Without a tracer no library is loaded
// and no object made. tracing/otel-tracer.ts records and sends spans.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

export type SpanAttributes = Readonly<Record<string, string | number>>;

/** One timed piece of work. Every span is ended, once. */
export interface Span {
  set(attributes: SpanAttributes): void;
  /** `failure`, in words, marks the span as failed. */
  end(failure?: string): void;
}

/** A trace. */
export interface SpanParent {
  /** `scope` names the part of the program. */
  startSpan(scope: string, name: string, attributes?: SpanAttributes): Span;
}

export type ServerSpan = Span & SpanParent;

/** Never throws, never blocks, and bounds what it remembers. */
export interface Tracer {
  /**
   * For a call that came in: continues the trace that its headers name (B3, or W3C trace context,
   * which wins), or begins one. `header` gives a header's first value, by its name in lower case.
   * Undefined when the trace is not recorded: then nothing below it is either.
   */
  startServerSpan(
    scope: string,
    name: string,
    header: (name: string) => string | undefined,
  ): ServerSpan | undefined;
  /**
   * For a call that this process makes, in a trace of its own. `setHeader` gets the headers by which
   * its receiver continues that trace (W3C trace context). Undefined when it is not recorded.
   */
  startClientSpan(
    scope: string,
    name: string,
    setHeader: (name: string, value: string) => void,
  ): Span | undefined;
  /** For work without a trace of its caller's: each span is a trace of its own. Undefined: none is
   * recorded at the moment. */
  roots(): SpanParent | undefined;
  /** Sends what has been recorded, for at most `timeoutMs`; nothing is recorded from then on. */
  stop(timeoutMs: number): Promise<void>;
}

export interface TracerOptions {
  /** OTLP over HTTP with protobuf bodies, or over gRPC. */
  readonly protocol: 'http' | 'grpc';
  /** Part of the traces without a parent that are recorded, 0 to 1. */
  readonly samplingRate: number;
  /** The attributes of the program that makes the spans, such as `service.name`. */
  readonly resource: SpanAttributes;
}

export interface TracerDeps {
  readonly log: Log;
  readonly clock: Clock;
}
