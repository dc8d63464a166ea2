// The delta protocol for one stream: each response has the changes since the last one, and the client
// accepts or refuses it as a whole, or in parts that we cannot see.
import type { DeltaDiscoveryRequestMessage } from '../../shared/wire/discovery-messages.ts';
import {
  type DeltaBody,
  type HeldResources,
  noResources,
  toDelta,
  toSharedDelta,
} from '../snapshot/response-body.ts';
import { type Snapshot, toContentVersion } from '../snapshot/snapshot.ts';
import { toKeptBytes } from './kept-names.ts';
import type { Answer, Session, SessionResponse } from './session.ts';
import {
  createSelector,
  type Subscription,
  toDeltaSubscription,
  wantsNothing,
} from './subscription.ts';

export type DeltaSession = Session<DeltaDiscoveryRequestMessage>;

/** Limit of unanswered responses; a client that does not answer gets no more. */
const maxUnanswered = 4;

interface Unanswered {
  readonly nonce: string;
  readonly version: string;
  readonly names: readonly string[];
}

export function createDeltaSession(): DeltaSession {
  const selector = createSelector();
  let subscription: Subscription | undefined;
  let newest: Snapshot | undefined;
  /** What the client has if it accepts everything that was sent. */
  let held: HeldResources = noResources;
  /** Whether the client has what many have: then responses are made once for all. */
  let isHeldByMany = true;
  /** Refused names: whether the client has them is unknown, so the next response includes them. */
  let doubtful = new Set<string>();
  /** Names that the client asked for again: it gets the resource or its removal. */
  let owed = new Set<string>();
  /** A client without resources gets one empty response, so that it does not wait. */
  let owesAnything = false;
  let unanswered: readonly Unanswered[] = [];
  let refusedVersion: string | undefined;
  let sentVersion = '';
  let nonces = 0;
  let isSending = false;

  function next(): SessionResponse | undefined {
    if (isSending || newest === undefined || subscription === undefined) return undefined;
    if (unanswered.length >= maxUnanswered || wantsNothing(subscription)) return undefined;
    const wanted = selector.select(newest, subscription);
    const change = toChange(wanted, subscription.wildcard);
    held = wanted.resources;
    isHeldByMany = true;
    if (change === undefined) return undefined;
    nonces++;
    const nonce = String(nonces);
    const { version } = wanted;
    doubtful = new Set();
    owed = new Set();
    owesAnything = false;
    sentVersion = version;
    isSending = true;
    unanswered = [...unanswered, { nonce, version, names: change.names }];
    return { nonce, version, body: change.bytes };
  }

  /** Undefined when there is nothing to say. */
  function toChange(wanted: Snapshot, wildcard: boolean): DeltaBody | undefined {
    const isShared = wildcard && isHeldByMany && doubtful.size === 0 && owed.size === 0;
    if (isShared && held === wanted.resources && !owesAnything) return undefined;
    let body = isShared ? toSharedDelta(held, wanted) : toDelta(held, wanted, owed);
    const isNews = body.names.length > 0 || owesAnything;
    // A refused state is offered again only as part of a different one.
    const isOtherThanRefused = doubtful.size > 0 && wanted.version !== refusedVersion;
    if (!isNews && !isOtherThanRefused) return undefined;
    if (doubtful.size > 0) body = toDelta(held, wanted, new Set([...owed, ...doubtful]));
    return body;
  }

  function holdAlone(resources: Iterable<readonly [string, { readonly version: string }]>): void {
    held = new Map(resources);
    isHeldByMany = false;
  }

  function readFirst(request: DeltaDiscoveryRequestMessage, snapshot: Snapshot | undefined): void {
    // In the order of names, as versions are made.
    const initial = Object.entries(request.initialResourceVersions ?? {}).sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    owesAnything = initial.length === 0;
    if (!owesAnything) holdAlone(initial.map(([name, version]) => [name, { version }]));
    const { resourceNamesSubscribe: names = [] } = request;
    owed = new Set(names.filter((name) => name !== '*' && !held.has(name)));
    if (snapshot !== undefined && subscription !== undefined) {
      const wanted = selector.select(snapshot, subscription);
      if (isSameContent(held, wanted.resources)) {
        held = wanted.resources;
        isHeldByMany = true;
        sentVersion = wanted.version;
      }
    }
  }

  function readChange(request: DeltaDiscoveryRequestMessage, before: Subscription): void {
    if (subscription === undefined || subscription === before) return;
    const { wildcard, names } = subscription;
    for (const name of request.resourceNamesSubscribe ?? []) {
      if (name === '*') owesAnything ||= !before.wildcard;
      else owed.add(name);
    }
    for (const name of request.resourceNamesUnsubscribe ?? []) {
      if (!wildcard) owed.delete(name);
      // Under a wildcard a client that unsubscribes from a name gets the resource again, or its removal;
      // names that it never asked for are ignored.
      else if (before.names.has(name)) owed.add(name);
    }
    if (wildcard) return;
    holdAlone([...held].filter(([name]) => names.has(name)));
    doubtful = new Set([...doubtful].filter((name) => names.has(name)));
  }

  /** The version of what a client that names resources certainly has: it may have unsubscribed from some
   * since they were sent. Undefined while uncertain, and when everything or nothing is wanted. */
  function keptVersion(): string | undefined {
    if (subscription === undefined || subscription.wildcard || wantsNothing(subscription)) {
      return undefined;
    }
    return unanswered.length === 0 && doubtful.size === 0 ? toContentVersion(held) : undefined;
  }

  function readAnswer(request: DeltaDiscoveryRequestMessage, isFirst: boolean): Answer | undefined {
    const { errorDetail } = request;
    if (isFirst) {
      if (errorDetail != null) {
        const text = errorDetail.message ?? '';
        return { kind: 'refuses', version: undefined, text, holds: '' };
      }
      return sentVersion === '' ? undefined : { kind: 'holds', version: sentVersion };
    }
    const answered = unanswered.find(({ nonce }) => nonce === request.responseNonce);
    if (answered === undefined) {
      const givesUp = (request.resourceNamesUnsubscribe ?? []).length > 0;
      const version = givesUp ? keptVersion() : undefined;
      return version === undefined ? undefined : { kind: 'keeps', version };
    }
    unanswered = unanswered.filter((response) => response !== answered);
    if (errorDetail == null) return { kind: 'holds', version: keptVersion() ?? answered.version };
    refusedVersion = answered.version;
    for (const name of answered.names) {
      if (subscription?.wildcard || subscription?.names.has(name)) doubtful.add(name);
    }
    const text = errorDetail.message ?? '';
    return { kind: 'refuses', version: answered.version, text, holds: '' };
  }

  return {
    onRequest(request, snapshot) {
      newest = snapshot;
      const before = subscription;
      subscription = toDeltaSubscription(before, {
        subscribe: request.resourceNamesSubscribe ?? [],
        unsubscribe: request.resourceNamesUnsubscribe ?? [],
      });
      if (before === undefined) readFirst(request, snapshot);
      else readChange(request, before);
      // Names count whatever the nonce: they are changes, which the client does not repeat.
      const answer = readAnswer(request, before === undefined);
      const changesNames = before !== undefined && subscription !== before;
      return { response: next(), answer, changesNames };
    },
    onSnapshot(snapshot) {
      newest = snapshot;
      return next();
    },
    onSent() {
      isSending = false;
      return next();
    },
    wantedVersion: (snapshot) =>
      subscription === undefined ? snapshot.version : selector.versionOf(snapshot, subscription),
    get wantedNames() {
      // State shared with all clients is not counted for this one.
      return Math.max(
        subscription?.names.size ?? 0,
        isHeldByMany ? 0 : held.size,
        owed.size,
        countOthers(doubtful, newest),
      );
    },
    get keptBytes() {
      return (
        toKeptBytes(subscription?.names ?? []) +
        toKeptBytes(owed) +
        toKeptBytes(isHeldByMany ? [] : Array.from(held, ([name, { version }]) => name + version))
      );
    },
  };
}

function countOthers(names: ReadonlySet<string>, snapshot: Snapshot | undefined): number {
  let count = 0;
  for (const name of names) if (!snapshot?.resources.has(name)) count++;
  return count;
}

function isSameContent(held: HeldResources, resources: Snapshot['resources']): boolean {
  if (held.size !== resources.size) return false;
  for (const [name, { version }] of held) {
    if (resources.get(name)?.version !== version) return false;
  }
  return true;
}
