// One client's side of the conversation as the server keeps it, for either protocol: events in,
// responses out. No sockets and no timers; the stream feeds it and sends what comes out.

import type { ResponseBody } from '../snapshot/response-body.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** A response to send now. */
export interface SessionResponse {
  readonly nonce: string;
  readonly version: string;
  /** Everything but the nonce. */
  readonly body: ResponseBody;
}

/** What a request said about versions, for the record of who has what. */
export type Answer =
  | { readonly kind: 'holds'; readonly version: string }
  /** Names were given up, for which nothing is sent: what is left has a version of its own. */
  | { readonly kind: 'keeps'; readonly version: string }
  | {
      readonly kind: 'refuses';
      /** Undefined when the response came from an earlier stream. */
      readonly version: string | undefined;
      readonly text: string;
      /** What the client goes on with; empty when it does not say. */
      readonly holds: string;
    };

export interface RequestOutcome {
  readonly response: SessionResponse | undefined;
  readonly answer: Answer | undefined;
  /** The request says anew what is wanted, by which the client can have a response made at any time.
   * Never true of the first one. */
  readonly changesNames: boolean;
}

/**
 * After a response has come out, none comes until `onSent`: a client that reads slowly has one
 * response waiting at most, and gets the newest snapshot next, not those between.
 */
export interface Session<Request> {
  /** `snapshot` is what applies to the node now. */
  onRequest(request: Request, snapshot: Snapshot | undefined): RequestOutcome;
  /** What applies to the node may have changed. */
  onSnapshot(snapshot: Snapshot | undefined): SessionResponse | undefined;
  /** The last response has left for the network. */
  onSent(): SessionResponse | undefined;
  /** The version of what the client wants of the snapshot: what it holds when it has everything.
   * Undefined when it wants nothing. Cheap, above all when it wants everything. */
  wantedVersion(snapshot: Snapshot): string | undefined;
  /** How many names are kept for the client alone: what it asked for, all requests together, what it
   * says that it has, and what it is still to hear of. */
  readonly wantedNames: number;
  /** About what is kept for the client alone. */
  readonly keptBytes: number;
}
