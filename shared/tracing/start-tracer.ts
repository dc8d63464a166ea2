// Loads what records and sends spans, when somebody wants them.
import type { Tracer, TracerDeps, TracerOptions } from '../tracing.ts';

/** Where spans go and how they are gathered is read from the environment by the exporter:
 * OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES. */
export async function startTracer(options: TracerOptions, deps: TracerDeps): Promise<Tracer> {
  const { createOtelTracer } = await import('./otel-tracer.ts');
  return createOtelTracer(options, deps);
}
