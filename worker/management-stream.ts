// One connection to a management server with one stream on it, over @grpc/grpc-js. Users decide when to
// connect and what to send: rules-source/xds-source.ts, and fleet/link.ts.
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientOptions,
  connectivityState,
  credentials,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/proto-loader';
import type { Clock } from '../shared/clock.ts';
import { AppError, errorText } from '../shared/errors.ts';
import { createTlsCredentials } from '../shared/grpc/client-credentials.ts';
import { redact } from '../shared/redact.ts';
import { readTlsFiles, type TlsFiles, withTrustedCas } from '../shared/tls.ts';
import { trimEnd, withoutEnding } from '../shared/trim-end.ts';
import type { ReadToken } from './token-file.ts';

export interface ManagementServer {
  /** An address such as `localhost:18000`. */
  readonly url: string;
  /** Sent with the stream; names are in lower case. Values may be secret. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as `authorization: Bearer TOKEN`, read for each connection. Undefined without a token. */
  readonly readToken?: ReadToken | undefined;
  /** Undefined without TLS. The files are read for each connection. */
  readonly tls: (TlsFiles & { readonly san: string | undefined }) | undefined;
  /** 0 means 4 MiB. */
  readonly maxMessageBytes: number;
}

export interface ManagementStream<Request> {
  /**
   * Can be called after `onOpen`. `onSent` is called when the network has accepted the request, unless the stream ends
   * before.
   */
  send(request: Request, onSent?: () => void): void;
  /** Ends it at once; no event follows. Idempotent. */
  close(): void;
}

export interface ManagementStreamDeps<Request, Response> {
  readonly server: ManagementServer;
  readonly method: MethodDefinition<Request, Response, Request, Response>;
  readonly clock: Clock;
  readonly onOpen: () => void;
  readonly onResponse: (response: Response) => void;
  /**
   * The last event, called once: `reason` is human-readable. The stream was open if `onOpen` was called.
   * `isUnimplemented`: the server does not have this method.
   */
  readonly onEnd: (reason: string, isUnimplemented: boolean) => void;
}

/** Time limit of one attempt, including DNS and TLS. */
const connectTimeoutMs = 10_000;

/** By default, Go's servers treat pings more often than every five minutes as an attack. */
export const keepaliveMs = 310_000;
export const keepaliveTimeoutMs = 20_000;

/** Secret headers, by name. Values of other headers, such as `x-env: e`, occur in ordinary sentences. */
const secretHeader = /authorization|cookie|token|key|secret|password/i;
const shortestSecret = 6;
/** Least length of a secret part of a value: shorter parts are words such as `Bearer`. */
const shortestToken = 8;

const defaultMaxMessageBytes = 4 * 1024 * 1024;

export type OpenManagementStream = typeof openManagementStream;

/** Starts connecting. */
export function openManagementStream<Request, Response>(
  deps: ManagementStreamDeps<Request, Response>,
): ManagementStream<Request> {
  return new OpenStream(deps);
}

class OpenStream<Request, Response> implements ManagementStream<Request> {
  readonly #deps: ManagementStreamDeps<Request, Response>;
  readonly #server;
  readonly #method;
  #client: Client | undefined;
  #call: ClientDuplexStream<Request, Response> | undefined;
  #isOpen = false;
  #isDone = false;
  #secrets;
  readonly #cancelDeadline;

  constructor(deps: ManagementStreamDeps<Request, Response>) {
    this.#deps = deps;
    this.#server = deps.server;
    this.#method = deps.method;
    this.#secrets = toSecrets(deps.server.headers);
    this.#cancelDeadline = deps.clock.after(connectTimeoutMs, () =>
      this.#end(`no connection within ${connectTimeoutMs / 1000}s`),
    );
    this.#start().catch((error: unknown) => this.#end(errorText(error)));
  }

  /** Ends it at once; no event follows. Idempotent. */
  close(): void {
    this.#isDone = true;
    this.#cancelDeadline();
    this.#call?.cancel();
    this.#client?.close();
  }

  #end(reason: string, code?: status): void {
    if (this.#isDone) return;
    this.close();
    this.#deps.onEnd(reason, code === status.UNIMPLEMENTED);
  }

  #open(): void {
    if (this.#isDone || this.#isOpen) return;
    this.#isOpen = true;
    this.#cancelDeadline();
    this.#deps.onOpen();
  }

  async #start(): Promise<void> {
    const channelCredentials = await createCredentials(this.#server.tls);
    const token = await this.#server.readToken?.();
    if (this.#isDone) return;
    const headers =
      token === undefined ? this.#server.headers : withToken(this.#server.headers, token);
    this.#secrets = toSecrets(headers);
    if (typeof channelCredentials === 'string') {
      this.#end(channelCredentials);
      return;
    }
    this.#client = new Client(this.#server.url, channelCredentials, toClientOptions(this.#server));
    this.#call = this.#client.makeBidiStreamRequest(
      this.#method.path,
      this.#method.requestSerialize,
      this.#method.responseDeserialize,
      toMetadata(headers),
    );
    this.#call.on('metadata', () => this.#open());
    this.#call.on('data', (response: Response) => {
      this.#open();
      if (!this.#isDone) this.#deps.onResponse(response);
    });
    // Every error is also reported as a status.
    this.#call.on('error', () => {});
    this.#call.on('status', (outcome: StatusObject) => {
      if (this.#client?.getChannel().getConnectivityState(false) === connectivityState.READY)
        this.#open();
      // Some servers quote an unknown token.
      this.#end(redact(describeStatus(outcome), this.#secrets), outcome.code);
    });
    this.#awaitReady(this.#client);
  }

  #awaitReady(of: Client): void {
    if (this.#isDone) return;
    const channel = of.getChannel();
    const state = channel.getConnectivityState(true);
    if (state === connectivityState.READY) this.#open();
    // Only our deadline matters here; the status of the call reports failures.
    else
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => this.#awaitReady(of));
  }

  /**
   * Can be called after `onOpen`. `onSent` is called when the network has accepted the request, unless the stream ends
   * before.
   */
  send(request: Request, onSent?: () => void): void {
    if (this.#isDone) return;
    this.#call?.write(request, () => {
      if (!this.#isDone) onSent?.();
    });
  }
}

function toClientOptions({ tls, maxMessageBytes }: ManagementServer): ClientOptions {
  return {
    'grpc.max_receive_message_length': maxMessageBytes || defaultMaxMessageBytes,
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
    // Each attempt is a new connection, with the current files.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    // Without this the library reports the first megabyte as sent while it only stores it.
    'grpc.per_rpc_retry_buffer_size': 0,
    // Retries are decided elsewhere. After this wait the library reopens a failed connection, even one that was closed
    // meanwhile, and then never ends it: so the wait is minimal.
    'grpc.initial_reconnect_backoff_ms': 1,
    'grpc.max_reconnect_backoff_ms': 1,
    'grpc.service_config_disable_resolution': 1,
    ...(tls?.san !== undefined && {
      'grpc.ssl_target_name_override': tls.san,
      'grpc.default_authority': tls.san,
    }),
  };
}

/** Returns a text, the reason, if there are none. */
async function createCredentials(
  tls: ManagementServer['tls'],
): Promise<ChannelCredentials | string> {
  if (tls === undefined) return credentials.createInsecure();
  const reading = await readTlsFiles(tls);
  if (!reading.ok) return reading.problem;
  const { ca, cert = null, key = null } = reading.material;
  return createTlsCredentials(withTrustedCas(ca), key, cert);
}

function withToken(headers: ManagementServer['headers'], token: string) {
  return { ...headers, authorization: `Bearer ${token}` };
}

function toMetadata(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    try {
      // A field with a blank at the start or the end is invalid (RFC 9113 section 8.2.1), and servers drop it.
      metadata.set(key, key.endsWith('-bin') ? Buffer.from(value) : value.trim());
    } catch {
      // The library's text contains the value, which may be secret.
      throw new AppError('cannot_start', `header ${JSON.stringify(name)} cannot be sent`);
    }
  }
  return metadata;
}

/** The values of headers that contain secrets, and the parts after the word `Bearer`. */
function toSecrets(headers: ManagementServer['headers']): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    secretHeader.test(name) && value.length >= shortestSecret
      ? [value, ...value.split(' ').filter((part) => part.length >= shortestToken)]
      : [],
  );
}

function describeStatus({ code, details }: StatusObject): string {
  if (code === status.OK) return 'the server ended the stream';
  // The library ends some texts with an empty heading.
  const text = withoutEnding(details, 'Resolution note:');
  const shown = text === details ? text : trimEnd(text, '.');
  // A refusal by the library itself; a server's begins with the name of its library.
  const isOurs = code === status.RESOURCE_EXHAUSTED && details.startsWith('Received message');
  return `${status[code]}: ${shown}${isOurs ? '; raise XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES' : ''}`;
}
