// Makes gRPC calls, each on its own connection, with requests and answers in proto JSON. It reads the interface
// definitions itself, so that it does not share a mistake with the worker.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type ChannelCredentials,
  Client,
  credentials,
  type MethodDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Json } from './case-file.ts';
import { withoutDefaults } from './comparison.ts';

const deadlineMs = 60_000;
type JsonObject = { [key: string]: Json };

const definition = loadSync(
  ['envoy/service/ratelimit/v3/rls.proto', 'grpc/health/v1/health.proto'],
  {
    includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
    enums: String,
    longs: Number,
  },
);

export interface CallOptions {
  /** `server`: TLS without a client certificate; otherwise the name of one. */
  readonly tls: string | undefined;
  /** Whether to include the status' text, instead of `*`. */
  readonly showText: boolean;
}

/** `{ grpcStatus, message }`, or `{ grpcStatus, grpcMessage }` for an error. */
export async function callShouldRateLimit(
  target: string,
  request: Json,
  options: CallOptions,
): Promise<JsonObject> {
  const outcome = await call(
    target,
    'envoy.service.ratelimit.v3.RateLimitService',
    'ShouldRateLimit',
    toWireRequest(request as JsonObject),
    options,
  );
  return outcome.ok ? { grpcStatus: 0, message: toJsonResponse(outcome.message) } : outcome.error;
}

/** `{ grpcStatus, health }`, or `{ grpcStatus, grpcMessage }` for an error. */
export async function callHealthCheck(
  target: string,
  service: string,
  options: CallOptions,
): Promise<JsonObject> {
  const outcome = await call(target, 'grpc.health.v1.Health', 'Check', { service }, options);
  return outcome.ok ? { grpcStatus: 0, health: outcome.message['status'] ?? null } : outcome.error;
}

type Outcome =
  | { readonly ok: true; readonly message: JsonObject }
  | { readonly ok: false; readonly error: JsonObject };

async function call(
  target: string,
  service: string,
  methodName: string,
  request: JsonObject,
  options: CallOptions,
): Promise<Outcome> {
  const methods = definition[service] as unknown as Record<
    string,
    MethodDefinition<Json, JsonObject>
  >;
  const method = methods[methodName];
  if (method === undefined) throw new Error(`no method ${methodName}`);
  // A separate channel, not one that grpc-js shares between equal targets.
  const client = new Client(target, channelCredentials(options.tls), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.ssl_target_name_override': 'localhost',
  });
  try {
    return await new Promise((resolve) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, message?: JsonObject) => {
          if (error === null && message !== undefined) {
            resolve({ ok: true, message });
          } else {
            const text = options.showText ? (error?.details ?? '') : '*';
            resolve({
              ok: false,
              error: { grpcStatus: error?.code ?? status.UNKNOWN, grpcMessage: text },
            });
          }
        },
      );
    });
  } finally {
    client.close();
  }
}

function channelCredentials(tls: string | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const read = (name: string): Buffer => readFileSync(new URL(`tls/${name}`, import.meta.url));
  const isClient = tls !== 'server';
  return credentials.createSsl(
    read('ca.pem'),
    isClient ? read(`${tls}.key`) : null,
    isClient ? read(`${tls}.pem`) : null,
    { checkServerIdentity: () => undefined },
  );
}

function toWireRequest(request: JsonObject): JsonObject {
  const descriptors = (request['descriptors'] ?? []) as JsonObject[];
  return {
    ...request,
    descriptors: descriptors.map((descriptor) => {
      const { hitsAddend } = descriptor;
      return hitsAddend === undefined
        ? descriptor
        : { ...descriptor, hitsAddend: { value: hitsAddend } };
    }),
  };
}

function toJsonResponse(message: JsonObject): Json {
  const statuses = ((message['statuses'] ?? []) as JsonObject[]).map((one) => {
    const reset = one['durationUntilReset'] as JsonObject | undefined | null;
    return reset ? { ...one, durationUntilReset: `${reset['seconds'] ?? 0}s` } : one;
  });
  const metadata = message['dynamicMetadata'] ? { dynamicMetadata: 'present' } : {};
  return withoutDefaults({ ...message, statuses, ...metadata });
}
