// The state-of-the-world protocol for one stream: each response has everything the client wants, and a
// version that it accepts or refuses.
import type { DiscoveryRequestMessage } from '../../shared/wire/discovery-messages.ts';
import { toSelectedBody, toWholeBody } from '../snapshot/response-body.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { toKeptBytes } from './kept-names.ts';
import type { Answer, Session, SessionResponse } from './session.ts';
import {
  createSelector,
  type Subscription,
  toSotwSubscription,
  wantsNothing,
} from './subscription.ts';

export type SotwSession = Session<DiscoveryRequestMessage>;

export function createSotwSession(): SotwSession {
  const selector = createSelector();
  let subscription: Subscription | undefined;
  let newest: Snapshot | undefined;
  /** The version the client last reported, or was sent since: nothing is sent twice. */
  let lastVersion = '';
  let lastNonce = 0;
  let isAnswered = true;
  let isSending = false;
  /** Existing names were added: they are sent even if the content was sent before. */
  let owes = false;

  function next(): SessionResponse | undefined {
    if (isSending || newest === undefined || subscription === undefined) return undefined;
    if (wantsNothing(subscription)) return undefined;
    const wanted = selector.select(newest, subscription);
    // Also true of a refused version, so that it is never offered again.
    if (wanted.version === lastVersion && !owes) return undefined;
    lastVersion = wanted.version;
    lastNonce++;
    isAnswered = false;
    isSending = true;
    owes = false;
    return {
      nonce: String(lastNonce),
      version: wanted.version,
      body: subscription.wildcard ? toWholeBody(wanted) : toSelectedBody(wanted),
    };
  }

  /** Undefined when the request answers nothing. */
  function readAnswer(request: DiscoveryRequestMessage, isFirst: boolean): Answer | undefined {
    const { versionInfo = '', errorDetail } = request;
    const isReply = !isFirst && !isAnswered && request.responseNonce === String(lastNonce);
    if (isReply) isAnswered = true;
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

  return {
    onRequest(request, snapshot) {
      newest = snapshot;
      const before = subscription;
      const { responseNonce = '' } = request;
      const isFirst = before === undefined;
      // A request that answers an earlier response is out of date as a whole: the answer to the last one
      // follows, with the names wanted then. The first request of a stream is never out of date, nor any
      // before the first response: clients may continue with the nonce of their last stream (behaviour:
      // refusals-and-nonces).
      const isStale = lastNonce > 0 && responseNonce !== '' && responseNonce !== String(lastNonce);
      if (isStale) return { response: undefined, answer: undefined, changesNames: false };
      subscription = toSotwSubscription(before, request.resourceNames ?? []);
      if (isFirst) lastVersion = request.versionInfo ?? '';
      else if (snapshot !== undefined && hasNewNames(before, subscription, snapshot)) owes = true;
      const answer = readAnswer(request, isFirst);
      return { response: next(), answer, changesNames: !isFirst && subscription !== before };
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
      return subscription?.names.size ?? 0;
    },
    get keptBytes() {
      return toKeptBytes(subscription?.names ?? []);
    },
  };
}

function hasNewNames(before: Subscription, after: Subscription, snapshot: Snapshot): boolean {
  if (before === after) return false;
  if (after.wildcard) return !before.wildcard;
  for (const name of after.names) {
    if (!before.names.has(name) && snapshot.resources.has(name)) return true;
  }
  return false;
}
