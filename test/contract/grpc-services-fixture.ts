// The worker's gRPC services on a transport, without decisions: every descriptor is OK.
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { codes } from '../../worker/decision/message.ts';
import type { GrpcTls, GrpcTransport } from '../../worker/grpc/transport.ts';
import { createHealth, type Health } from '../../worker/health.ts';
import { createGrpcServer } from '../../worker/listen/grpc/grpc-server.ts';
import { createRecordedLog, type RecordedLog } from '../support/recorded-log.ts';
import { createStubMetrics } from '../support/stub-metrics.ts';

export interface GrpcServices {
  readonly server: GrpcTransport;
  readonly port: number;
  readonly health: Health;
  readonly log: RecordedLog;
}

export async function startGrpcServices(t: ExecutionContext, tls?: GrpcTls): Promise<GrpcServices> {
  const log = createRecordedLog();
  const health = createHealth({ requireConfig: false });
  const server = createGrpcServer(
    {
      shouldRateLimit(decision) {
        const { domain, descriptors } = decision.request;
        const none = { currentLimit: undefined, limitRemaining: 0, secondsUntilReset: undefined };
        decision.answer({
          ok: true,
          response: {
            overallCode: codes.ok,
            statuses: descriptors.map(() => ({ code: codes.ok, ...none })),
            responseHeadersToAdd: [{ key: 'x-domain', value: domain }],
            requestHeadersToAdd: [],
            dynamicMetadata: undefined,
          },
        });
      },
      health,
      metrics: createStubMetrics(),
      log,
      clock: systemClock,
    },
    { target: { host: '127.0.0.1', port: 0 }, tls },
  );
  const { port } = await server.start();
  t.teardown(() => server.stop(0));
  return { server, port, health, log };
}
