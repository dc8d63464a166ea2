// The server's state of one client, for either protocol: requests in, responses out; and which resources a client
// wants, by name or all of them, with the corresponding selection of a snapshot. Uses no sockets and no timers; the
// stream feeds a session and sends its responses.

import type { ResponseBody } from '../snapshot/snapshot.ts';
import { createSnapshot, type Snapshot } from '../snapshot/snapshot.ts';

/** A response to send at once. */
export interface SessionResponse {
  readonly nonce: string;
  readonly version: string;
  /** Everything except the nonce. */
  readonly body: ResponseBody;
}

/** What a request reports about versions, for the record of workers. */
export type Answer =
  | { readonly kind: 'holds'; readonly version: string }
  /** Names were unsubscribed, which sends nothing: the remaining selection has its own version. */
  | { readonly kind: 'keeps'; readonly version: string }
  | {
      readonly kind: 'refuses';
      /** Undefined when the response came from an earlier stream. */
      readonly version: string | undefined;
      readonly text: string;
      /** The version that the client keeps; empty when it does not report one. */
      readonly holds: string;
    };

export interface RequestOutcome {
  readonly response: SessionResponse | undefined;
  readonly answer: Answer | undefined;
  /** The request changes what is wanted, so the client can trigger responses at any time. Never true of the first
   * request. */
  readonly changesNames: boolean;
}

/** After a response, no other follows until `onSent`: a slow client has at most one response waiting, and then receives
 * the newest snapshot, skipping those in between. */
export interface Session<Request> {
  /** `snapshot` is the node's current one. */
  onRequest(request: Request, snapshot: Snapshot | undefined): RequestOutcome;
  /** The node's snapshot may have changed. */
  onSnapshot(snapshot: Snapshot | undefined): SessionResponse | undefined;
  /** The last response has been written to the network. */
  onSent(): SessionResponse | undefined;
  /** The version of the selection that the client wants, which it holds when it is up to date. Undefined when it wants
   * nothing. Cheap, above all when it wants everything. */
  wantedVersion(snapshot: Snapshot): string | undefined;
  /** The number of names kept only for this client: those that it requested, those that it reports to have, and those
   * still to be sent. */
  readonly wantedNames: number;
  /** Approximate bytes kept only for this client. */
  readonly retainedBytes: number;
}

/** Immutable. */
export interface Subscription {
  /** All resources, whatever their names. */
  readonly wildcard: boolean;
  /** Names that are wanted; sorted for state of the world, in the order of subscription for delta. */
  readonly names: ReadonlySet<string>;
}

/** The name that selects all resources. */
const everyName = '*';

/** The subscription of a stream that has never named anything. */
const everything: Subscription = { wildcard: true, names: new Set() };

/** State of the world: each request lists all wanted resources. An empty list means everything, unless names were given
 * before on this stream: then it means that the client no longer wants anything. */
export function toSotwSubscription(
  before: Subscription | undefined,
  names: readonly string[],
): Subscription {
  if (names.length === 0) {
    if (before === undefined || before === everything) return everything;
    return { wildcard: false, names: new Set() };
  }
  if (before !== undefined && isSame(before, names)) return before;
  // "*" stays among the names: it was given, so that a later empty list means nothing.
  return { wildcard: names.includes(everyName), names: new Set(names) };
}

export interface DeltaChange {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
}

/** Delta: requests change what is wanted. A first request without names to add means everything. */
export function toDeltaSubscription(
  before: Subscription | undefined,
  { subscribe, unsubscribe }: DeltaChange,
): Subscription {
  if (subscribe.length === 0 && unsubscribe.length === 0) return before ?? everything;
  const names = new Set(before?.names);
  let wildcard = before?.wildcard ?? subscribe.length === 0;
  for (const name of subscribe) {
    if (name === everyName) wildcard = true;
    else names.add(name);
  }
  for (const name of unsubscribe) {
    if (name === everyName) wildcard = false;
    else names.delete(name);
  }
  return { wildcard, names };
}

/** True when the client has unsubscribed from everything. */
export function wantsNothing({ wildcard, names }: Subscription): boolean {
  return !wildcard && names.size === 0;
}

/** For one client: retains the version of its last selection, but not the selection. */
export class Selector {
  #from: Snapshot | undefined;
  #by: Subscription | undefined;
  #lastVersion = '';

  /** The wanted part of the snapshot, under a version of its own that changes elsewhere do not affect; the snapshot
   * itself when everything is wanted. */
  select(snapshot: Snapshot, subscription: Subscription): Snapshot {
    if (subscription.wildcard) return snapshot;
    const wanted = createSnapshot(
      Array.from(subscription.names, (name) => snapshot.resources.get(name)).filter(
        (resource) => resource !== undefined,
      ),
    );
    this.#from = snapshot;
    this.#by = subscription;
    this.#lastVersion = wanted.version;
    return wanted;
  }

  /** The version of the wanted part; undefined when nothing is wanted. Repeated calls with the same snapshot do not
   * select again. */
  versionOf(snapshot: Snapshot, subscription: Subscription): string | undefined {
    if (subscription.wildcard) return snapshot.version;
    if (wantsNothing(subscription)) return undefined;
    const isKnown = this.#from === snapshot && this.#by === subscription;
    return isKnown ? this.#lastVersion : this.select(snapshot, subscription).version;
  }
}

function isSame({ names }: Subscription, given: readonly string[]): boolean {
  return given.every((name) => names.has(name)) && new Set(given).size === names.size;
}
