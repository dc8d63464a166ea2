// Calls a worker as a proxy does: over gRPC, on one persistent connection.
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { Owner } from './owner.ts';
import type { WorkerProcess } from './worker-process.ts';

const RateLimitClient = makeClientConstructor(loadProtos().rateLimitService, 'RateLimitService');
const deadlineMs = 30_000;
const codes = new Map<unknown, CallAnswer>([
  [1, 'OK'],
  [2, 'OVER_LIMIT'],
]);

/** The overall code, or `failed: ` and the reason. */
export type CallAnswer = 'OK' | 'OVER_LIMIT' | `failed: ${string}`;

export interface CallOutcome {
  readonly answer: CallAnswer;
  /** Undefined if there was no answer. */
  readonly remaining: number | undefined;
}

interface Answer {
  readonly overallCode?: unknown;
  readonly statuses?: readonly { readonly limitRemaining?: number }[];
}

export type Caller = ReturnType<typeof createCaller>;

export interface WorkerCaller extends Caller {
  readonly worker: WorkerProcess;
}

/** At the worker's port, or at another address. */
export function createWorkerCaller(
  t: Owner,
  worker: WorkerProcess,
  address = `127.0.0.1:${worker.ports.grpc}`,
): WorkerCaller {
  return { worker, ...createCaller(t, address) };
}

/** Closed when its owner ends. */
export function createCaller(t: Owner, address: string, channel = credentials.createInsecure()) {
  // Otherwise callers of one address share a connection.
  const client = new RateLimitClient(address, channel, { 'grpc.use_local_subchannel_pool': 1 });
  t.teardown(() => client.close());
  function ask(domain: string, key: string, value: string): Promise<CallOutcome> {
    const request = { domain, descriptors: [{ entries: [{ key, value }] }] };
    return new Promise((resolve, reject) => {
      client['ShouldRateLimit']?.(
        request,
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, answer?: Answer) => {
          const code = codes.get(answer?.overallCode);
          const remaining = answer?.statuses?.[0]?.limitRemaining;
          if (error !== null) resolve({ answer: `failed: ${error.details}`, remaining });
          else if (code !== undefined) resolve({ answer: code, remaining });
          else reject(new Error(`an answer without a decision: ${JSON.stringify(answer)}`));
        },
      );
    });
  }
  return {
    /** The answer with the remaining hits of the limit. */
    ask,
    /** One hit of a descriptor with one entry. */
    decide: async (domain: string, key: string, value: string) =>
      (await ask(domain, key, value)).answer,
    close: () => client.close(),
  };
}
