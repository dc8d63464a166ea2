// Requests one decision over gRPC, with a deadline. Error texts are those of the reference's client (behaviour:
// client-output).
import { readFileSync } from 'node:fs';
import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { errorText } from '../../shared/errors.ts';
import { createTlsCredentials } from '../../shared/grpc/client-credentials.ts';
import { withoutNodeAdvice } from '../../shared/tls.ts';
import { withoutEnding } from '../../shared/trim-end.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { RateLimitResponseMessage } from '../../shared/wire/rate-limit-messages.ts';
import type { ClientArguments, ClientTls } from './arguments.ts';
import { type CallTracing, startCallSpan } from './call-tracing.ts';

export type CallOutcome =
  | { readonly ok: true; readonly response: RateLimitResponseMessage }
  /** One line, such as `request error: rpc error: code = Unavailable desc = ...`. */
  | { readonly ok: false; readonly message: string };

export async function askForDecision(
  ask: ClientArguments,
  tracing: CallTracing | undefined,
): Promise<CallOutcome> {
  let client: Client;
  try {
    client = new Client(ask.target, readCredentials(ask.tls));
  } catch (error) {
    return { ok: false, message: `error connecting: ${errorText(error)}` };
  }
  try {
    return await call(client, ask, tracing);
  } finally {
    client.close();
  }
}

function call(
  client: Client,
  ask: ClientArguments,
  tracing: CallTracing | undefined,
): Promise<CallOutcome> {
  const method = loadProtos().rateLimitService.ShouldRateLimit;
  const request = {
    domain: ask.domain,
    descriptors: ask.descriptors.map((entries) => ({ entries })),
    hitsAddend: ask.hitsAddend,
  };
  const metadata = new Metadata();
  const span = tracing && startCallSpan(tracing, method.path, metadata);
  return new Promise((resolve) => {
    const unaryCall = client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      metadata,
      { deadline: Date.now() + ask.timeoutMs },
      (error: ServiceError | null, response?: RateLimitResponseMessage) => {
        const peer = error === null ? unaryCall.getPeer() : '';
        span?.end(status[error?.code ?? status.OK], peer, error?.details);
        resolve(
          error === null && response !== undefined
            ? { ok: true, response }
            : { ok: false, message: toRequestError(error, ask) },
        );
      },
    );
  });
}

function toRequestError(error: ServiceError | null, ask: ClientArguments): string {
  const code = error?.code ?? status.UNKNOWN;
  // grpc-js ends some texts with an empty heading.
  const details = withoutEnding(error?.details ?? 'no response', 'Resolution note:');
  const text = withoutNodeAdvice(details);
  const message = `request error: rpc error: code = ${toCodeName(code)} desc = ${text}`;
  const hint = findHint(code, text, ask);
  return hint === undefined ? message : `${message}\n${hint}`;
}

function findHint(
  code: status,
  text: string,
  { target, domain, descriptors, tls }: ClientArguments,
) {
  if (code === status.UNAVAILABLE) {
    if (/certificate/.test(text)) {
      return 'set -grpc-server-ca-file to a file with the CA of its certificate';
    }
    const other = `is a worker listening at ${target}? choose another address with -dial_string`;
    return tls === undefined ? `${other}; use -grpc-use-tls if it has TLS` : other;
  }
  const missing = [
    ...(domain === '' ? ['-domain NAME'] : []),
    ...(descriptors.length === 0 ? ['-descriptors key=value'] : []),
  ];
  return missing.length === 0 ? undefined : `missing: ${missing.join(', ')}; -help lists all flags`;
}

/** `DeadlineExceeded` for DEADLINE_EXCEEDED, as the reference's language spells codes. */
function toCodeName(code: status): string {
  if (code === status.CANCELLED) return 'Canceled';
  return status[code]
    .toLowerCase()
    .replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Throws with the flag and the path when a file cannot be used. */
function readCredentials(tls: ClientTls | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  return createTlsCredentials(
    readPem('grpc-server-ca-file', tls.serverCaFile),
    readPem('grpc-key-file', tls.keyFile),
    readPem('grpc-cert-file', tls.certFile),
  );
}

function readPem(flag: string, path: string): Buffer | null {
  try {
    return path === '' ? null : readFileSync(path);
  } catch (error) {
    throw new Error(`-${flag}: ${errorText(error)}`);
  }
}
