// A rate limit service, asked for decisions over gRPC one at a time.
import {
  type ChannelCredentials,
  Client,
  credentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import type { RecordedDecision } from '../../../shared/decision-record.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import type {
  RateLimitRequestMessage,
  RateLimitResponseMessage,
} from '../../../shared/wire/rate-limit-messages.ts';
import type { ServiceAnswer } from './answer-difference.ts';

export interface AskedService {
  /** Why it cannot be reached within 5 s; undefined when it can. */
  connect(): Promise<string | undefined>;
  /** A text instead of an answer when the connection is lost, or the service does not answer for 5 s. */
  ask(request: RateLimitRequestMessage): Promise<ServiceAnswer | string>;
  close(): void;
}

const deadlineMs = 5_000;

/** `target` in gRPC syntax: host:port, or unix:PATH. Plain text without `tls`. */
export function createAskedService(
  target: string,
  tls: ChannelCredentials | undefined,
): AskedService {
  const method = loadProtos().rateLimitService.ShouldRateLimit;
  // Otherwise both services would share a connection if they have the same address.
  const client = new Client(target, tls ?? credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
  });
  const deadline = () => Date.now() + deadlineMs;
  return {
    connect: () =>
      new Promise((resolve) => {
        client.waitForReady(deadline(), (error) =>
          resolve(
            error ? `it does not accept connections within ${deadlineMs / 1000} s` : undefined,
          ),
        );
      }),
    ask: (request) =>
      new Promise((resolve) => {
        client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          request,
          { deadline: deadline() },
          (error: ServiceError | null, response?: RateLimitResponseMessage) => {
            if (response !== undefined && error === null) resolve({ ok: true, response });
            else if (error?.code === status.UNAVAILABLE) resolve('the connection to it was lost');
            else if (error?.code === status.DEADLINE_EXCEEDED) {
              resolve(`it did not answer within ${deadlineMs / 1000} s`);
            } else resolve({ ok: false, code: status[error?.code ?? status.UNKNOWN] });
          },
        );
      }),
    close: () => client.close(),
  };
}

/** The recorded request. */
export function toRequestMessage({
  domain,
  descriptors,
  hits_addend: hitsAddend = 0,
}: RecordedDecision): RateLimitRequestMessage {
  return {
    domain,
    hitsAddend,
    descriptors: descriptors.map(({ entries, limit, hits_addend, is_negative_hits }) => ({
      entries,
      limit: limit ? { requestsPerUnit: limit.requests_per_unit, unit: limit.unit } : null,
      hitsAddend: hits_addend === undefined ? null : { value: hits_addend },
      isNegativeHits: is_negative_hits === true,
    })),
  };
}
