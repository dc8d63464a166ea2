// The server's state of one client, for either protocol: events in, responses out. No sockets and no
// timers; the stream feeds it and sends its responses.

import type { ResponseBody } from '../snapshot/response-body.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** A response to send now. */
export interface SessionResponse {
  readonly nonce: string;
  readonly version: string;
  /** Everything but the nonce. */
  readonly body: ResponseBody;
}

/** What a request said about versions, for the record of workers. */
export type Answer =
  | { readonly kind: 'holds'; readonly version: string }
  /** Names were unsubscribed, which sends nothing: the rest has a version of its own. */
  | { readonly kind: 'keeps'; readonly version: string }
  | {
      readonly kind: 'refuses';
      /** Undefined when the response came from an earlier stream. */
      readonly version: string | undefined;
      readonly text: string;
      /** The version that the client keeps; empty when it does not say. */
      readonly holds: string;
    };

export interface RequestOutcome {
  readonly response: SessionResponse | undefined;
  readonly answer: Answer | undefined;
  /** The request changes what is wanted, so the client can trigger responses at any time. Never true of the
   * first one. */
  readonly changesNames: boolean;
}

/**
 * After a response none follows until `onSent`: a slow client has at most one response waiting, and then
 * gets the newest snapshot, skipping those between.
 */
export interface Session<Request> {
  /** `snapshot` is the node's current one. */
  onRequest(request: Request, snapshot: Snapshot | undefined): RequestOutcome;
  /** The node's snapshot may have changed. */
  onSnapshot(snapshot: Snapshot | undefined): SessionResponse | undefined;
  /** The last response has been written to the network. */
  onSent(): SessionResponse | undefined;
  /** The version of the part that the client wants, which it holds when it is up to date. Undefined when it
   * wants nothing. Cheap, above all when it wants everything. */
  wantedVersion(snapshot: Snapshot): string | undefined;
  /** How many names are kept for this client alone: those it asked for, those it says it has, and those it
   * still has to get. */
  readonly wantedNames: number;
  /** Approximate bytes kept for this client alone. */
  readonly keptBytes: number;
}
