// A worker that consists only of its two streams to a control plane, on its own connection: it accepts or refuses what
// it is sent, reports the figures of a test, and leaves with or without a goodbye.
import { randomUUID } from 'node:crypto';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
} from 'node:http2';
import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import { discoveryProtos } from './ads-fixture.ts';
import { frame } from './raw-discovery.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const link = loadFleetLink();
const reportMs = 500;
const instanceKey = 'ratelane.instance';

/** Per report of 100 decisions. */
export interface Figures {
  readonly overLimit?: number;
  readonly errors?: number;
}

export interface StreamWorkerOptions {
  /** `127.0.0.1:<port>`. */
  readonly address: string;
  readonly id: string;
  /** Undefined: a worker of another make, without a link. */
  readonly instance?: string | undefined;
  /** What it reports while its rules contain this text, instead of only decisions. */
  readonly figuresOf?: (rules: string) => Figures;
  readonly answer?: (rules: string) => 'take' | 'refuse' | 'ignore';
  readonly headers?: Readonly<Record<string, string>>;
  /** What it keeps when it connects again. */
  readonly memory?: StreamWorkerMemory;
}

/** Changed by the worker. */
type StreamWorkerMemory = ReturnType<typeof createStreamWorkerMemory>;

export function createStreamWorkerMemory() {
  return {
    /** Its rules, as bytes, and their version. */
    rules: '',
    version: '',
    /** All versions that it was ever sent. */
    notified: [] as string[],
    /** Since it was started. */
    totals: { decisions: 0, overLimit: 0, errors: 0 },
  };
}

export type StreamWorker = ReturnType<typeof connectStreamWorker>;

export function connectStreamWorker(
  t: Pick<ExecutionContext, 'teardown'>,
  options: StreamWorkerOptions,
) {
  const { address, id } = options;
  const figuresOf: (rules: string) => Figures = options.figuresOf ?? (() => ({}));
  const instance = 'instance' in options ? options.instance : randomUUID();
  const answer = options.answer ?? (() => 'take');
  const [host = '', port = ''] = address.split(':');
  let socket: Socket | undefined;
  const session: ClientHttp2Session = connectHttp2(`http://${address}`, {
    createConnection: () => {
      socket = connect(Number(port), host);
      return socket;
    },
  });
  session.on('error', () => {});
  const memory = options.memory ?? createStreamWorkerMemory();
  const { notified, totals } = memory;
  const ended: string[] = [];
  const closed = Promise.withResolvers<void>();

  function open(path: string, onMessage: (bytes: Buffer) => void): ClientHttp2Stream {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...options.headers,
    });
    let rest: Buffer = Buffer.alloc(0);
    stream.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
        const length = rest.readUInt32BE(1);
        onMessage(rest.subarray(5, 5 + length));
        rest = rest.subarray(5 + length);
      }
    });
    const end = (headers: Record<string, unknown>): void => {
      if (headers['grpc-status'] === undefined) return;
      ended.push(
        `${headers['grpc-status']} ${decodeURIComponent(String(headers['grpc-message'] ?? ''))}`,
      );
    };
    stream
      .on('response', end)
      .on('trailers', end)
      .on('error', () => {});
    return stream;
  }

  const metadata = {
    fields: {
      'ratelane.fields': { stringValue: '1' },
      ...(instance !== undefined && { [instanceKey]: { stringValue: instance } }),
    },
  };
  const send = (stream: ClientHttp2Stream, bytes: Buffer) => {
    if (!stream.destroyed && stream.writable) stream.write(frame(bytes));
  };
  const discovery = open(sotw.path, (bytes) => {
    const response = sotw.responseDeserialize(bytes);
    const text = response.resources?.map(({ value }) => value?.toString()).join() ?? '';
    notified.push(text);
    const does = answer(text);
    if (does === 'ignore') return;
    if (does === 'take') {
      memory.rules = text;
      memory.version = response.versionInfo ?? '';
    }
    const errorDetail = { code: 3, message: 'no such unit' };
    const request = { versionInfo: memory.version, responseNonce: response.nonce ?? '' };
    const answered = does === 'refuse' ? { ...request, errorDetail } : request;
    send(discovery, sotw.requestSerialize({ typeUrl: rateLimitConfigTypeUrl, ...answered }));
  });
  const first = {
    node: { id, metadata },
    versionInfo: memory.version,
    typeUrl: rateLimitConfigTypeUrl,
  };
  discovery.once('close', closed.resolve);
  send(discovery, sotw.requestSerialize(first as never));
  const report = instance !== undefined ? open(link.path, () => {}) : undefined;
  if (report !== undefined) {
    const hello = { nodeId: id, instance, agreement: 'a', countsAlone: true, allowsReset: false };
    send(report, link.requestSerialize({ hello: { ...hello, values: 0 } } as never));
  }
  const timer = setInterval(() => {
    if (report === undefined) return;
    const { overLimit = 0, errors = 0 } = figuresOf(memory.rules);
    totals.decisions += 100;
    totals.overLimit += overLimit;
    totals.errors += errors;
    const all = { ...totals, nearLimitHits: 0, noMatch: 0, durations: [] };
    const message = { version: memory.version, totals: all, seconds: reportMs / 1000 };
    send(
      report,
      link.requestSerialize({ report: { ...message, rules: [], unmatched: [] } } as never),
    );
  }, reportMs);
  const close = () => {
    clearInterval(timer);
    session.destroy();
    socket?.destroy();
  };
  t.teardown(close);

  return {
    id,
    instance,
    /** All versions that it was ever sent. */
    notified,
    /** The gRPC statuses of its ended streams. */
    ended,
    /** Resolves when its discovery stream has ended. */
    closed: closed.promise,
    /** The rules that it has, as bytes. */
    has: (text: string) => memory.rules.includes(text),
    /** Like a killed process. */
    vanish() {
      clearInterval(timer);
      socket?.resetAndDestroy();
      session.destroy();
    },
  };
}
