// A gRPC caller built only on node:http2, so that tests see what is on the wire.
import { once } from 'node:events';
import { type ClientHttp2Stream, connect, constants } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ListenAddress } from '../../worker/grpc/listen-address.ts';

export interface RawAnswer {
  readonly httpStatus: number;
  readonly grpcStatus: number | undefined;
  /** Percent-decoded. */
  readonly text: string;
  readonly messages: readonly Buffer[];
  /** The fields of the first header block and the trailers together. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** True when the stream ended with its first header block. */
  readonly isTrailersOnly: boolean;
}

export interface CallerTls {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface OpenCall {
  readonly stream: ClientHttp2Stream;
  send(message: Buffer): void;
  /** Rejects when the stream breaks before its trailers. */
  readonly answer: Promise<RawAnswer>;
}

export type Caller = Awaited<ReturnType<typeof createCaller>>;

/** Rejects when no session can be established. */
export async function createCaller(address: ListenAddress, tls?: CallerTls) {
  const target =
    address.port === 0 ? { path: address.text } : { host: '127.0.0.1', port: address.port };
  const socket =
    tls === undefined
      ? connectSocket(target)
      : connectTls({ ...target, ...tls, servername: 'localhost', ALPNProtocols: ['h2'] });
  await once(socket, tls === undefined ? 'connect' : 'secureConnect');
  const session = connect('http://localhost', { createConnection: () => socket });
  session.on('error', () => {});
  let hasGoaway = false;
  session.once('goaway', () => {
    hasGoaway = true;
  });
  await Promise.race([
    once(session, 'remoteSettings', { signal: AbortSignal.timeout(60_000) }),
    // Errors of the socket: a session does not always notice that its socket has failed.
    new Promise((_resolve, reject) => {
      socket.once('close', () => reject(new Error('closed before it could be used')));
    }),
  ]);

  function open(path: string, headers: Record<string, string> = {}): OpenCall {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      ...headers,
    });
    const answer = readAnswer(stream);
    // A caller that does not await the answer ignores how it ends.
    answer.catch(() => {});
    return {
      stream,
      send: (message) => {
        stream.write(frame(message));
      },
      answer,
    };
  }

  return {
    session,
    /** Whether a GOAWAY has arrived since the connection was opened. */
    get hasGoaway() {
      return hasGoaway;
    },
    open,
    /** One message, then the end. */
    call(path: string, message: Buffer, headers?: Record<string, string>) {
      const call = open(path, headers);
      call.stream.end(frame(message));
      return call.answer;
    },
    close: () => session.destroy(),
  };
}

export function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function readAnswer(stream: ClientHttp2Stream): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let httpStatus = 0;
    let fields: Record<string, unknown> = {};
    let isTrailersOnly = false;
    stream.on('response', (headers, frameFlags) => {
      isTrailersOnly = (frameFlags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      httpStatus = Number(headers[constants.HTTP2_HEADER_STATUS] ?? 0);
      fields = { ...headers };
    });
    stream.on('trailers', (trailers) => {
      fields = { ...fields, ...trailers };
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    let failure: Error | undefined;
    stream.on('error', (error) => {
      failure = error;
    });
    const settle = () => {
      const status = fields['grpc-status'];
      if (httpStatus === 0 || (failure !== undefined && status === undefined)) {
        reject(failure ?? new Error('the stream closed without an answer'));
        return;
      }
      // The server has finished; no one waits for what the caller might still send.
      stream.close();
      resolve({
        httpStatus,
        grpcStatus: status === undefined ? undefined : Number(status),
        text: decodeURIComponent(String(fields['grpc-message'] ?? '')),
        messages: unframe(Buffer.concat(chunks)),
        fields,
        isTrailersOnly,
      });
    };
    stream.once('end', () => {
      if (fields['grpc-status'] !== undefined) settle();
    });
    stream.once('close', settle);
  });
}

function unframe(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let position = 0; position + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(position + 1);
    messages.push(bytes.subarray(position + 5, position + 5 + length));
    position += 5 + length;
  }
  return messages;
}
