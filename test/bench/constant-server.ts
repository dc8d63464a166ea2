// The yardstick of the benchmark: a @grpc/grpc-js server that gives every call the same answer. It uses the same
// addresses and certificates as the worker.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { codes } from '../../worker/decision/message.ts';

const protoRoot = fileURLToPath(new URL('../../proto', import.meta.url));
const definition = loadSync('envoy/service/ratelimit/v3/rls.proto', { includeDirs: [protoRoot] });
const service = definition['envoy.service.ratelimit.v3.RateLimitService'];
if (!service || 'format' in service) throw new Error('rls.proto does not define the service');

const answer = {
  overallCode: codes.ok,
  statuses: [
    {
      code: codes.ok,
      currentLimit: { requestsPerUnit: 100, unit: 3 },
      limitRemaining: 99,
      durationUntilReset: { seconds: 30 },
    },
  ],
};

function createCredentials(): ServerCredentials {
  if (process.env['GRPC_SERVER_USE_TLS'] !== 'true') return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(null, [
    {
      cert_chain: readFileSync(process.env['GRPC_SERVER_TLS_CERT'] ?? ''),
      private_key: readFileSync(process.env['GRPC_SERVER_TLS_KEY'] ?? ''),
    },
  ]);
}

const server = new Server();
server.addService(service, {
  shouldRateLimit: (_call: unknown, done: (error: null, answer: unknown) => void) =>
    done(null, answer),
});
server.bindAsync(`127.0.0.1:${process.env['GRPC_PORT']}`, createCredentials(), (error) => {
  if (error) throw error;
});
process.once('SIGTERM', () => server.forceShutdown());
