// The state-of-the-world protocol for one stream: each response has everything that the client wants, and a version
// that the client accepts or refuses.
import type { DiscoveryRequestMessage } from '../../../shared/wire/discovery-messages.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { toFullBody, toSelectedBody } from '../snapshot/snapshot.ts';
import { toRetainedBytes } from './limits.ts';
import type { Answer, RequestOutcome, Session, SessionResponse } from './session.ts';
import { Selector, type Subscription, toSotwSubscription, wantsNothing } from './session.ts';

export class SotwSession implements Session<DiscoveryRequestMessage> {
  readonly #selector = new Selector();
  #subscription: Subscription | undefined;
  #newest: Snapshot | undefined;
  /** The version that the client last reported, or has been sent since: nothing is sent twice. */
  #lastVersion = '';
  #lastNonce = 0;
  #isAnswered = true;
  #isSending = false;
  /** Existing names were added: they are sent even if the content was sent before. */
  #mustResend = false;

  onRequest(request: DiscoveryRequestMessage, snapshot: Snapshot | undefined): RequestOutcome {
    this.#newest = snapshot;
    const before = this.#subscription;
    const { responseNonce = '' } = request;
    const isFirst = before === undefined;
    // A request that answers an earlier response is entirely out of date: the answer to the last response follows, with
    // the names wanted by then. The first request of a stream is never out of date, nor is any request before the first
    // response: clients may continue with the nonce of their last stream (behaviour: refusals-and-nonces).
    const isStale =
      this.#lastNonce > 0 && responseNonce !== '' && responseNonce !== String(this.#lastNonce);
    if (isStale) return { response: undefined, answer: undefined, changesNames: false };
    const subscription = toSotwSubscription(before, request.resourceNames ?? []);
    this.#subscription = subscription;
    if (isFirst) this.#lastVersion = request.versionInfo ?? '';
    else if (snapshot !== undefined && hasNewNames(before, subscription, snapshot)) {
      this.#mustResend = true;
    }
    const answer = this.#readAnswer(request, isFirst);
    return { response: this.#next(), answer, changesNames: !isFirst && subscription !== before };
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
    return this.#subscription?.names.size ?? 0;
  }

  get retainedBytes(): number {
    return toRetainedBytes(this.#subscription?.names ?? []);
  }

  #next(): SessionResponse | undefined {
    const newest = this.#newest;
    const subscription = this.#subscription;
    if (this.#isSending || newest === undefined || subscription === undefined) return undefined;
    if (wantsNothing(subscription)) return undefined;
    const wanted = this.#selector.select(newest, subscription);
    // This includes a refused version, so that it is never offered again.
    if (wanted.version === this.#lastVersion && !this.#mustResend) return undefined;
    this.#lastVersion = wanted.version;
    this.#lastNonce++;
    this.#isAnswered = false;
    this.#isSending = true;
    this.#mustResend = false;
    return {
      nonce: String(this.#lastNonce),
      version: wanted.version,
      body: subscription.wildcard ? toFullBody(wanted) : toSelectedBody(wanted),
    };
  }

  /** Undefined when the request answers no response. */
  #readAnswer(request: DiscoveryRequestMessage, isFirst: boolean): Answer | undefined {
    const { versionInfo = '', errorDetail } = request;
    const lastVersion = this.#lastVersion;
    const isReply =
      !isFirst && !this.#isAnswered && request.responseNonce === String(this.#lastNonce);
    if (isReply) this.#isAnswered = true;
    if (isFirst || isReply) {
      // Its presence counts: the reference's client refuses with code 0 (behaviour: refusals-and-nonces).
      if (errorDetail != null) {
        const text = errorDetail.message ?? '';
        const version = isReply ? lastVersion : undefined;
        return { kind: 'refuses', version, text, holds: versionInfo };
      }
      if (isReply) return { kind: 'holds', version: lastVersion };
      if (versionInfo !== '') return { kind: 'holds', version: versionInfo };
    }
    return undefined;
  }
}

function hasNewNames(before: Subscription, after: Subscription, snapshot: Snapshot): boolean {
  if (after.wildcard) return !before.wildcard;
  for (const name of after.names) {
    if (!before.names.has(name) && snapshot.resources.has(name)) return true;
  }
  return false;
}
