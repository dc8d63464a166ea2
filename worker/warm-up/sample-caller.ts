// Callers of the worker's own ports. The gRPC one is minimal: it sends frames like a proxy, and only
// detects answers.
import { once } from 'node:events';
import { type RequestOptions, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { listHuffmanCodes } from '../grpc/http2/hpack/huffman-code.ts';
import { staticTable } from '../grpc/http2/hpack/static-table.ts';

export interface SampleTarget {
  readonly host: string;
  readonly port: number;
  /** The port's certificate in PEM; undefined without TLS. */
  readonly certificate: Buffer | undefined;
  /** Ends the connections when it aborts. */
  readonly signal: AbortSignal;
}

export interface SampleCaller {
  /** Sends one request; resolves with the answer. Rejects when the connection ends. One call at a time. */
  call(message: Buffer): Promise<void>;
  /** Resolves when the connection is closed. */
  close(): Promise<void>;
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
/** Frame types of RFC 9113, sections 6 and 4.1. */
const frames = { data: 0, headers: 1, settings: 4 };
const flags = { endStream: 0x1, endHeaders: 0x4 };
const frameHeaderBytes = 9;
const prefixBytes = 5;

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
/** The fields that the first request of a connection adds to the dynamic table. */
const repeatedFields = [
  [':path', path],
  [':authority', 'ratelimit'],
  ['te', 'trailers'],
  ['content-type', 'application/grpc'],
  ['x-envoy-internal', 'true'],
  ['user-agent', 'envoy'],
] as const;
/** `:method POST` and `:scheme http`. */
const indexedFields = [0x83, 0x86];

/** Resolves when the caller is connected. */
export async function createSampleCaller(target: SampleTarget): Promise<SampleCaller> {
  const socket = await openSocket(target);
  let waiting: PromiseWithResolvers<void> | undefined;
  let unread: Buffer = Buffer.alloc(0);
  let streamId = -1;
  const closed = new Promise<void>((resolve) => socket.once('close', resolve));
  socket.on('close', () => waiting?.reject(new Error('the connection was closed')));
  socket.on('data', (chunk: Buffer) => {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    let start = 0;
    while (unread.length - start >= frameHeaderBytes) {
      const end = start + frameHeaderBytes + unread.readUIntBE(start, 3);
      if (end > unread.length) break;
      const isOfCall = (unread[start + 3] ?? 0) <= frames.headers;
      if (isOfCall && ((unread[start + 4] ?? 0) & flags.endStream) !== 0) waiting?.resolve();
      start = end;
    }
    unread = unread.subarray(start);
  });

  return {
    call(message) {
      waiting = Promise.withResolvers();
      if (socket.destroyed) waiting.reject(new Error('the connection was closed'));
      streamId += 2;
      const isFirst = streamId === 1;
      const data = Buffer.alloc(prefixBytes + message.length);
      data.writeUInt32BE(message.length, 1);
      data.set(message, prefixBytes);
      socket.write(
        Buffer.concat([
          ...(isFirst ? [Buffer.from(preface), toFrame(frames.settings, 0, 0, noBytes)] : []),
          toFrame(frames.headers, flags.endHeaders, streamId, toBlock(isFirst, streamId)),
          toFrame(frames.data, flags.endStream, streamId, data),
        ]),
      );
      return waiting.promise;
    },
    close() {
      socket.end();
      return closed;
    },
  };
}

/** Resolves at the end of the answer, whatever the answer is. */
export async function postSample(
  { host, port, certificate, signal }: SampleTarget,
  path: string,
  body: string,
): Promise<void> {
  const options: RequestOptions = { host, port, path, method: 'POST', agent: false, signal };
  const posted =
    certificate === undefined
      ? request(options)
      : requestTls({ ...options, ca: certificate, rejectUnauthorized: false });
  // May also occur after the answer has begun, when the request is no longer awaited.
  posted.on('error', () => {});
  posted.end(body);
  const [response] = await once(posted, 'response');
  response.resume();
  await once(response, 'close');
}

async function openSocket({ host, port, certificate, signal }: SampleTarget): Promise<Socket> {
  signal.throwIfAborted();
  const socket =
    certificate === undefined
      ? connect({ host, port })
      : // Trusts only this CA, since loading those of Node takes time.
        connectTls({
          host,
          port,
          ALPNProtocols: ['h2'],
          ca: certificate,
          rejectUnauthorized: false,
        });
  // May also occur when the connection is no longer awaited.
  socket.on('error', () => {});
  const destroy = () => socket.destroy();
  signal.addEventListener('abort', destroy, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', destroy));
  socket.setNoDelay(true);
  await once(socket, certificate === undefined ? 'connect' : 'secureConnect', { signal });
  return socket;
}

const noBytes = Buffer.alloc(0);

function toFrame(type: number, flag: number, streamId: number, payload: Buffer): Buffer {
  const frame = Buffer.alloc(frameHeaderBytes + payload.length);
  frame.writeUIntBE(payload.length, 0, 3);
  frame[3] = type;
  frame[4] = flag;
  frame.writeUInt32BE(streamId, 5);
  frame.set(payload, frameHeaderBytes);
  return frame;
}

/** Every second request has its own trace headers, as callers with and without tracing send them. */
function toBlock(isFirst: boolean, streamId: number): Buffer {
  const fields: Buffer[] = [Buffer.from(indexedFields)];
  for (const [index, [name, value]] of repeatedFields.entries()) {
    if (isFirst) fields.push(toLiteral(0x40, name, value));
    else fields.push(Buffer.from([0x80 | (staticTable.length + repeatedFields.length - index)]));
  }
  if (streamId % 4 === 3) {
    fields.push(toLiteral(0x00, 'grpc-timeout', '2S'));
    fields.push(toLiteral(0x00, 'x-request-id', `5f0c2a-${streamId}-b7e9`));
  }
  return Buffer.concat(fields);
}

/** A literal of RFC 7541, sections 6.2.1 and 6.2.2, without an index for the name. */
function toLiteral(representation: number, name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([representation]), toHuffman(name), toHuffman(value)]);
}

const codes = listHuffmanCodes();

/** A string of section 5.2, with less than 127 octets. */
function toHuffman(text: string): Buffer {
  const octets: number[] = [];
  let bits = 0;
  let held = 0;
  for (const octet of Buffer.from(text, 'latin1')) {
    const code = codes[octet] ?? { bits: 0, length: 0 };
    bits = (bits << code.length) | code.bits;
    for (held += code.length; held >= 8; held -= 8) octets.push((bits >>> (held - 8)) & 0xff);
    bits &= (1 << held) - 1;
  }
  if (held > 0) octets.push(((bits << (8 - held)) | (0xff >>> held)) & 0xff);
  return Buffer.from([0x80 | octets.length, ...octets]);
}
