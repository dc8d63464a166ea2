// The span of the client's own call, created and sent like the worker's spans (behaviour: client-output, spans).
import type { Metadata } from '@grpc/grpc-js';
import { systemClock } from '../../shared/clock.ts';
import { silentLog } from '../../shared/log.ts';
import { startTracer } from '../tracing/start-tracer.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { createRpcSpanDescription, toRpcConventions } from '../tracing-rpc.ts';
import type { TraceProtocol } from './arguments.ts';

const scope = 'ratelimit grpc client';

export interface CallTracing {
  readonly tracer: Tracer;
  /** Items of OTEL_SEMCONV_STABILITY_OPT_IN. */
  readonly optIns: readonly string[];
}

export interface CallSpan {
  /** `peer` is `address:port`; '' if the call failed. */
  end(statusName: string, peer: string, failure: string | undefined): void;
}

/** Failures to send spans are passed to `print`. */
export function startClientTracer(
  protocol: TraceProtocol,
  print: (text: string) => void,
): Promise<Tracer> {
  const log = { ...silentLog, warning: print, error: print };
  return startTracer(
    { protocol, samplingRate: 1, resource: { 'service.name': 'RateLimitClient' } },
    { log, clock: systemClock },
  );
}

/** Starts the span of a call to the method at `path`; adds the headers that propagate the trace to `metadata`. */
export function startCallSpan(
  { tracer, optIns }: CallTracing,
  path: string,
  metadata: Metadata,
): CallSpan | undefined {
  const description = createRpcSpanDescription(path, toRpcConventions(optIns));
  const setHeader = (name: string, value: string) => metadata.set(name, value);
  const span = tracer.startClientSpan(scope, description.name, setHeader);
  if (span === undefined) return undefined;
  span.set(description.method);
  return {
    end(statusName, peer, failure) {
      span.set({ ...description.toPeer(peer), ...description.toStatus(statusName) });
      span.end(failure);
    },
  };
}
