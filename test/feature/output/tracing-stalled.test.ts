// Tests a receiver of traces that accepts connections but reads nothing: decisions must not be affected.
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { eventually } from '../../support/eventually.ts';
import { startStalledReceiver } from '../../support/otlp-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const RateLimitClient = makeClientConstructor(loadProtos().rateLimitService, 'RateLimitService');
const request = { domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] };
const decisions = 300;
/** Flushing traces may take 5 s. */
const stopBoundMs = 12_000;

async function ask(t: ExecutionContext, port: number): Promise<string[]> {
  const client = new RateLimitClient(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  return Promise.all(
    Array.from(
      { length: decisions },
      () =>
        new Promise<string>((resolve) => {
          client['ShouldRateLimit']?.(
            request,
            { deadline: Date.now() + 60_000 },
            (error: ServiceError | null) => resolve(error === null ? 'answered' : error.details),
          );
        }),
    ),
  );
}

for (const protocol of ['http', 'grpc'] as const) {
  // Proof of migrating.md: While the receiver of traces does not read, no more are made, which is logged
  test.serial(
    `decisions continue, and the stop is bounded, while traces over ${protocol} are not read`,
    async (t) => {
      const receiver = await startStalledReceiver(t);
      const worker = await startWorkerProcess(t, {
        rules: {
          'd.yaml': 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unlimited: true}\n',
        },
        env: {
          BACKEND_TYPE: 'memory',
          TRACING_ENABLED: 'true',
          TRACING_EXPORTER_PROTOCOL: protocol,
          OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
          OTEL_BSP_SCHEDULE_DELAY: '20',
          OTEL_BSP_MAX_QUEUE_SIZE: '64',
          OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '16',
        },
      });
      t.deepEqual(new Set(await ask(t, worker.ports.grpc)), new Set(['answered']));
      await eventually('a connection', () => receiver.connections > 0);
      t.deepEqual(new Set(await ask(t, worker.ports.grpc)), new Set(['answered']));
      await eventually('the complaint', () => /Traces are dropped/.test(worker.output()));
      t.is(worker.output().match(/Traces are dropped/g)?.length, 1);
      worker.signal('SIGTERM');
      t.is(await worker.waitForEnd(stopBoundMs), 0);
    },
  );
}
