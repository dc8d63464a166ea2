// The worker's tracer, from its settings. Without tracing none of its libraries is loaded.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../shared/clock.ts';
import type { Log } from '../shared/log.ts';
import type { WorkerSettings } from './settings.ts';
import { startTracer } from './tracing/start-tracer.ts';
import type { Tracer } from './tracing/tracer.ts';

/** Undefined when traces are off. */
export async function startWorkerTracer(
  settings: WorkerSettings['tracing'],
  deps: { readonly log: Log; readonly clock: Clock },
): Promise<Tracer | undefined> {
  const { log } = deps;
  if (!settings.enabled) {
    log.info('Tracing disabled');
    return undefined;
  }
  const { protocol, serviceName, serviceNamespace, samplingRate } = settings;
  const serviceInstanceId = settings.serviceInstanceId || randomUUID();
  const tracer = await startTracer(
    {
      protocol,
      samplingRate,
      resource: {
        'service.name': serviceName,
        'service.namespace': serviceNamespace,
        'service.instance.id': serviceInstanceId,
      },
    },
    deps,
  );
  log.info(
    `TracerProvider initialized with following parameters: protocol: ${protocol}, serviceName: ${serviceName}, serviceNamespace: ${serviceNamespace}, serviceInstanceId: ${serviceInstanceId}, samplingRate: ${samplingRate.toFixed(6)}`,
  );
  return tracer;
}
