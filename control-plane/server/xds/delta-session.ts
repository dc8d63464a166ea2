// The delta protocol for one stream: each response has the changes since the last one, and the client accepts or
// refuses it as a whole, or in parts that are invisible to the server.
import type { DeltaDiscoveryRequestMessage } from '../../../shared/wire/discovery-messages.ts';
import {
  type DeltaBody,
  type KnownResources,
  noResources,
  type Snapshot,
  toContentVersion,
  toDelta,
  toSharedDelta,
} from '../snapshot/snapshot.ts';
import { toRetainedBytes } from './limits.ts';
import type { Answer, RequestOutcome, Session, SessionResponse } from './session.ts';
import { Selector, type Subscription, toDeltaSubscription, wantsNothing } from './session.ts';

/** Limit of unanswered responses; a client that does not answer receives no more. */
const maxUnanswered = 4;

interface Unanswered {
  readonly nonce: string;
  readonly version: string;
  readonly names: readonly string[];
}

export class DeltaSession implements Session<DeltaDiscoveryRequestMessage> {
  readonly #selector = new Selector();
  #subscription: Subscription | undefined;
  #newest: Snapshot | undefined;
  /** The resources that the client has if it accepts everything that it was sent. */
  #known: KnownResources = noResources;
  /** Whether the client has the same resources as many others: then responses are created once for all. */
  #isShared = true;
  /** Refused names: whether the client has them is unknown, so the next response includes them. */
  #doubtful = new Set<string>();
  /** Names that the client asked for again: it gets the resource or its removal. */
  #owed = new Set<string>();
  /** A client without resources gets one empty response, so that it does not wait. */
  #owesAnything = false;
  #unanswered: readonly Unanswered[] = [];
  #refusedVersion: string | undefined;
  #sentVersion = '';
  #nonces = 0;
  #isSending = false;

  onRequest(request: DeltaDiscoveryRequestMessage, snapshot: Snapshot | undefined): RequestOutcome {
    this.#newest = snapshot;
    const before = this.#subscription;
    const after = toDeltaSubscription(before, {
      subscribe: request.resourceNamesSubscribe ?? [],
      unsubscribe: request.resourceNamesUnsubscribe ?? [],
    });
    this.#subscription = after;
    const changesNames = before !== undefined && after !== before;
    if (changesNames) this.#readChange(request, before, after);
    else if (before === undefined) this.#readFirst(request, after, snapshot);
    // Names are processed whatever the nonce: they are changes, which the client does not repeat.
    const answer = this.#readAnswer(request, before === undefined);
    return { response: this.#next(), answer, changesNames };
  }

  onSnapshot(snapshot: Snapshot | undefined): SessionResponse | undefined {
    this.#newest = snapshot;
    return this.#next();
  }

  onSent(): SessionResponse | undefined {
    this.#isSending = false;
    return this.#next();
  }

  wantedVersion(snapshot: Snapshot): string | undefined {
    return this.#subscription === undefined
      ? snapshot.version
      : this.#selector.versionOf(snapshot, this.#subscription);
  }

  get wantedNames(): number {
    // State shared with all clients is not attributed to this one.
    return Math.max(
      this.#subscription?.names.size ?? 0,
      this.#isShared ? 0 : this.#known.size,
      this.#owed.size,
      countOthers(this.#doubtful, this.#newest),
    );
  }

  get retainedBytes(): number {
    return (
      toRetainedBytes(this.#subscription?.names ?? []) +
      toRetainedBytes(this.#owed) +
      toRetainedBytes(
        this.#isShared ? [] : Array.from(this.#known, ([name, { version }]) => name + version),
      )
    );
  }

  #next(): SessionResponse | undefined {
    if (this.#isSending || this.#newest === undefined || this.#subscription === undefined)
      return undefined;
    if (this.#unanswered.length >= maxUnanswered || wantsNothing(this.#subscription))
      return undefined;
    const wanted = this.#selector.select(this.#newest, this.#subscription);
    const change = this.#toChange(wanted, this.#subscription.wildcard);
    this.#known = wanted.resources;
    this.#isShared = true;
    if (change === undefined) return undefined;
    this.#nonces++;
    const nonce = String(this.#nonces);
    const { version } = wanted;
    this.#doubtful.clear();
    this.#owed.clear();
    this.#owesAnything = false;
    this.#sentVersion = version;
    this.#isSending = true;
    this.#unanswered = [...this.#unanswered, { nonce, version, names: change.names }];
    return { nonce, version, body: change.bytes };
  }

  /** Undefined when there is nothing to send. */
  #toChange(wanted: Snapshot, wildcard: boolean): DeltaBody | undefined {
    const isShared =
      wildcard && this.#isShared && this.#doubtful.size === 0 && this.#owed.size === 0;
    let body = isShared
      ? toSharedDelta(this.#known, wanted)
      : toDelta(this.#known, wanted, this.#owed);
    const isNews = body.names.length > 0 || this.#owesAnything;
    // A refused state is offered again only as part of a different one.
    const isOtherThanRefused = this.#doubtful.size > 0 && wanted.version !== this.#refusedVersion;
    if (!isNews && !isOtherThanRefused) return undefined;
    if (this.#doubtful.size > 0)
      body = toDelta(this.#known, wanted, new Set([...this.#owed, ...this.#doubtful]));
    return body;
  }

  #holdAlone(resources: Iterable<readonly [string, { readonly version: string }]>): void {
    this.#known = new Map(resources);
    this.#isShared = false;
  }

  #readFirst(
    request: DeltaDiscoveryRequestMessage,
    wants: Subscription,
    snapshot: Snapshot | undefined,
  ): void {
    const initial = toKnown(request);
    this.#owesAnything = initial.length === 0;
    if (!this.#owesAnything) this.#holdAlone(initial);
    const { resourceNamesSubscribe: names = [] } = request;
    for (const name of names) if (name !== '*' && !this.#known.has(name)) this.#owed.add(name);
    if (snapshot !== undefined) {
      const wanted = this.#selector.select(snapshot, wants);
      if (isSameContent(this.#known, wanted.resources)) {
        this.#known = wanted.resources;
        this.#isShared = true;
        this.#sentVersion = wanted.version;
      }
    }
  }

  #readChange(
    request: DeltaDiscoveryRequestMessage,
    before: Subscription,
    { wildcard, names }: Subscription,
  ): void {
    for (const name of request.resourceNamesSubscribe ?? []) {
      if (name === '*') this.#owesAnything ||= !before.wildcard;
      else this.#owed.add(name);
    }
    for (const name of request.resourceNamesUnsubscribe ?? []) {
      if (!wildcard) this.#owed.delete(name);
      // A client with a wildcard that unsubscribes from a name receives the resource again, or its removal; names that
      // it never subscribed to are ignored.
      else if (before.names.has(name)) this.#owed.add(name);
    }
    if (wildcard) return;
    this.#holdAlone([...this.#known].filter(([name]) => names.has(name)));
    this.#doubtful = new Set([...this.#doubtful].filter((name) => names.has(name)));
  }

  /** The version of the resources that a client with named subscriptions certainly has: it may have unsubscribed from
   * some since they were sent. Undefined while uncertain, and when everything or nothing is wanted. */
  #retainedVersion(): string | undefined {
    if (
      this.#subscription === undefined ||
      this.#subscription.wildcard ||
      wantsNothing(this.#subscription)
    ) {
      return undefined;
    }
    return this.#unanswered.length === 0 && this.#doubtful.size === 0
      ? toContentVersion(this.#known)
      : undefined;
  }

  #readAnswer(request: DeltaDiscoveryRequestMessage, isFirst: boolean): Answer | undefined {
    const { errorDetail } = request;
    if (isFirst) {
      if (errorDetail != null) {
        const text = errorDetail.message ?? '';
        return { kind: 'refuses', version: undefined, text, holds: '' };
      }
      return this.#sentVersion === '' ? undefined : { kind: 'holds', version: this.#sentVersion };
    }
    const answered = this.#unanswered.find(({ nonce }) => nonce === request.responseNonce);
    if (answered === undefined) {
      const givesUp = (request.resourceNamesUnsubscribe ?? []).length > 0;
      const version = givesUp ? this.#retainedVersion() : undefined;
      return version === undefined ? undefined : { kind: 'keeps', version };
    }
    this.#unanswered = this.#unanswered.filter((response) => response !== answered);
    if (errorDetail == null)
      return { kind: 'holds', version: this.#retainedVersion() ?? answered.version };
    this.#refusedVersion = answered.version;
    for (const name of answered.names) {
      if (this.#subscription?.wildcard || this.#subscription?.names.has(name))
        this.#doubtful.add(name);
    }
    const text = errorDetail.message ?? '';
    return { kind: 'refuses', version: answered.version, text, holds: '' };
  }
}

/** The resources that a client has at its first request, in the order of names, as versions are made. */
export function toKnown({ initialResourceVersions = {} }: DeltaDiscoveryRequestMessage) {
  return Object.entries(initialResourceVersions)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, version]) => [name, { version }] as const);
}

function countOthers(names: ReadonlySet<string>, snapshot: Snapshot | undefined): number {
  let count = 0;
  for (const name of names) if (!snapshot?.resources.has(name)) count++;
  return count;
}

function isSameContent(known: KnownResources, resources: Snapshot['resources']): boolean {
  if (known.size !== resources.size) return false;
  for (const [name, { version }] of known) {
    if (resources.get(name)?.version !== version) return false;
  }
  return true;
}
