// Loads the tracer when tracing is on.
import type { Tracer, TracerDeps, TracerOptions } from './tracer.ts';

/**
 * The exporter reads the settings of receiver and batches from the environment: OTEL_EXPORTER_OTLP_*, OTEL_BSP_*,
 * OTEL_RESOURCE_ATTRIBUTES.
 */
export async function startTracer(options: TracerOptions, deps: TracerDeps): Promise<Tracer> {
  const { createOtelTracer } = await import('./otel-tracer.ts');
  return createOtelTracer(options, deps);
}
