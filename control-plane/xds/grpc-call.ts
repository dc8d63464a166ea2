// One gRPC call on a stream of node:http2: messages in and out, and the status at its end. Which
// method it is, and what the messages say, is left to its handler.
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../shared/clock.ts';
import { type Budget, MessageReader, prefixBytes } from '../../shared/grpc/message-reader.ts';
import { type GrpcStatus, grpcStatus } from '../../shared/grpc/status.ts';
import type { UnfinishedRequests } from '../../shared/unfinished-requests.ts';
import { toTrailers } from './grpc-status.ts';
import { createSliceSender } from './slice-sender.ts';

export interface GrpcCall {
  /** `<host>:<port>` of the peer. */
  readonly peerAddress: string;
  /**
   * Sends one message made of parts, which are not copied and must never be written to. `onSent` is
   * called when the last byte has been given to the network; not when the call ends before.
   */
  send(parts: readonly Buffer[], onSent: () => void): void;
  /** Ends the call after what was sent before; the client reads status and text. Further calls of
   * `send` and `finish` do nothing. */
  finish(status: GrpcStatus, text: string): void;
  /** Ends it at once, with what the client has not read. */
  abort(): void;
}

export interface CallHandler {
  /** Not called after `finish` or `abort`. */
  onMessage(message: Buffer): void;
  /** A request that the client has begun is not waited for any longer. Not called after `finish` or
   * `abort`. */
  onUnfinished(reason: string): void;
  /** The client sends no more. Not called after `finish` or `abort`. */
  onHalfClose(): void;
  /** Always called once, as the last. `isBroken`: the connection ended under the open call, without a goodbye
   * of the client, and it was not ended here. */
  onClose(isBroken: boolean): void;
}

export type OpenCall = (call: GrpcCall) => CallHandler;

export interface GrpcCallOptions {
  readonly peerAddress: string;
  readonly maxMessageBytes: number;
  readonly unfinishedRequests: UnfinishedRequests;
  /** Whether the connection has ended without a goodbye of the client. */
  readonly isBroken: () => boolean;
  readonly clock: Clock;
}

const closeTimeoutMs = 5_000;

/** What all streams together may keep is bounded by `UnfinishedRequests`. */
const unfinishedBudget: Budget = { hold: () => true, release: () => {} };

const responseHeaders = {
  ':status': 200,
  'content-type': 'application/grpc',
  'grpc-accept-encoding': 'identity',
} as const;

/** Answers a request without opening a call: a status and no message. */
export function refuseCall(
  stream: ServerHttp2Stream,
  refusal: { readonly status: GrpcStatus; readonly text: string; readonly clock: Clock },
): void {
  const { status, text, clock } = refusal;
  stream.on('error', ignoreError);
  if (stream.destroyed) return;
  stream.respond({ ...responseHeaders, ...toTrailers(status, text) }, { endStream: true });
  // What the client still sends is dropped, so that its end is seen.
  stream.resume();
  stream.once('close', closeLater(stream, clock));
}

/** The client has its answer and closes its side; one that does not is not waited for. */
function closeLater(stream: ServerHttp2Stream, clock: Clock): () => void {
  return clock.after(closeTimeoutMs, () => stream.close(constants.NGHTTP2_NO_ERROR));
}

export function openCall(
  stream: ServerHttp2Stream,
  { peerAddress, maxMessageBytes, unfinishedRequests, isBroken, clock }: GrpcCallOptions,
  open: OpenCall,
): void {
  const reader = new MessageReader(maxMessageBytes, unfinishedBudget);
  const sender = createSliceSender(stream, stream.session?.encrypted === true);
  let isOpen = true;
  let isBrokenOff = false;
  let trailers: Record<string, string> = {};
  stream.on('error', ignoreError);
  // For what happens once anyway `on` keeps 200 bytes less than `once`, which thousands of streams hold for days.
  // One that its client has reset by now throws when it is answered.
  if (!stream.destroyed) stream.respond(responseHeaders, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    stream.sendTrailers(trailers);
    stream.on('close', closeLater(stream, clock));
  });

  /** What has come of a request is given up at once: the stream may stay for as long as its client
   * does not read. */
  function stopReading(): void {
    isOpen = false;
    reader.drop();
    unfinished.holds(0, false);
  }

  const call: GrpcCall = {
    peerAddress,
    send(parts, onSent) {
      if (!isOpen) return;
      sender.send([toPrefix(parts), ...parts], () => {
        if (isOpen) onSent();
      });
    },
    finish(status, text) {
      if (!isOpen) return;
      stopReading();
      trailers = toTrailers(status, text);
      sender.end();
      // What still comes in is read and dropped, else the end of the stream would never be seen.
      stream.resume();
    },
    abort() {
      stopReading();
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    },
  };

  /** True when there was one. */
  function takeMessages(): boolean {
    let isNext = false;
    while (isOpen) {
      const next = reader.next();
      if (next.kind === 'incomplete') break;
      isNext = true;
      if (next.kind === 'too-large') {
        const text = `received message larger than max (${next.length} vs. ${maxMessageBytes})`;
        call.finish(grpcStatus.resourceExhausted, text);
      } else if (next.flag !== 0) {
        call.finish(grpcStatus.unimplemented, 'compressed requests are not supported');
      } else handler.onMessage(next.bytes);
    }
    return isNext;
  }

  const unfinished = unfinishedRequests.open((reason) => handler.onUnfinished(reason));
  const handler = open(call);
  stream.on('data', (chunk: Buffer) => {
    if (!isOpen) return;
    reader.add(chunk, 0, chunk.length);
    const isNext = takeMessages();
    if (!isOpen) return;
    if (reader.remaining === 0) reader.drop();
    unfinished.holds(reader.heldBytes, isNext);
  });
  stream.on('end', () => {
    if (!isOpen) return;
    if (reader.remaining === 0) handler.onHalfClose();
    else call.finish(grpcStatus.internal, 'the request ended within a message');
  });
  // At once with a reset by the client, whose connection may end before the stream is closed.
  stream.on('aborted', () => {
    isBrokenOff = isOpen && isBroken();
    stopReading();
  });
  stream.on('close', () => {
    stopReading();
    handler.onClose(isBrokenOff);
  });
}

/** Length of the message, and that it is not compressed. */
function toPrefix(parts: readonly Buffer[]): Buffer {
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    1,
  );
  return prefix;
}

/** A broken stream closes; nobody is left to be told why. */
function ignoreError(): void {}
