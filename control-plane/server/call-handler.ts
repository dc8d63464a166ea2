// A gRPC call as its handler sees it. xds/grpc-call.ts carries it over HTTP/2.
import type { GrpcStatus } from '../../shared/grpc/status.ts';

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
  /** Ends it at once, with what the client has not read; its connection too, unless there is another call on it. */
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

/** A request costs one more for each of these: large ones take longer to read. */
export const bytesPerToken = 64 * 1024;
