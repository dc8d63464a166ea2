// The client's side of the aggregated discovery protocol, state of the world: events in, actions out, without sockets,
// timers or clocks (behaviour: discovery-requests, several-management-servers, waits-between-streams). ads-resources.ts
// interprets the resources; xds-source.ts has connections and timers.

import type {
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
  NodeMessage,
} from '../../shared/wire/discovery-messages.ts';
import { type BackoffOptions, backoffDelayMs } from '../backoff.ts';

export interface AdsClientOptions {
  readonly node: NodeMessage;
  readonly typeUrl: string;
  /** The number of servers to choose from. */
  readonly serverCount: number;
  /** The waits after streams that ended. */
  readonly backoff: BackoffOptions;
  /**
   * The wait after an attempt without a stream; it does not grow, and does not affect the growing waits after streams.
   */
  readonly connectRetryMs: number;
}

export type AdsEvent =
  | { readonly kind: 'start' }
  /** The requested connection is open, and requests can be sent. */
  | { readonly kind: 'opened' }
  /** The requested connection failed. */
  | { readonly kind: 'connect-failed' }
  | { readonly kind: 'response'; readonly response: DiscoveryResponseMessage }
  /** The delivered response is in force. */
  | { readonly kind: 'accepted' }
  /** The delivered response is not, or only partly, in force; `text` is the reason for the server. */
  | { readonly kind: 'refused'; readonly text: string }
  /** The stream ended, for whatever reason. */
  | { readonly kind: 'ended' }
  /** The last requested wait is over. */
  | { readonly kind: 'waited' };

export type AdsAction =
  /** `server` is the index of the server to connect to. */
  | { readonly kind: 'connect'; readonly server: number }
  | { readonly kind: 'send'; readonly request: DiscoveryRequestMessage }
  /** Answer with `accepted` or `refused`. */
  | { readonly kind: 'deliver'; readonly response: DiscoveryResponseMessage }
  /** Answer with `waited`; replaces an earlier wait. */
  | { readonly kind: 'wait'; readonly delayMs: number };

export interface AdsState {
  readonly phase: 'waiting' | 'connecting' | 'open';
  /** The index of the current server, or of the next one. */
  readonly server: number;
  /** How many servers failed in succession since a response was accepted, or since the last wait. */
  readonly failedServers: number;
  /** Whether one of them had opened a stream. */
  readonly hadStream: boolean;
  /** Version of the last accepted response; '' before the first. */
  readonly ackedVersion: string;
  /** The number of streams that ended since a response was accepted. */
  readonly failures: number;
  /** The delivered response, until it is answered. */
  readonly delivered: DiscoveryResponseMessage | undefined;
  /** The last refusal sent to the server, unless a response was accepted since. */
  readonly refusedText: string | undefined;
  /** A refusal that is delayed for a while. */
  readonly pending: DiscoveryRequestMessage | undefined;
}

export const initialAdsState: AdsState = {
  phase: 'waiting',
  server: 0,
  failedServers: 0,
  hadStream: false,
  ackedVersion: '',
  failures: 0,
  delivered: undefined,
  refusedText: undefined,
  pending: undefined,
};

/** How long a repeated refusal is delayed: some servers resend a refused response at once, for ever. */
export const refusalPauseMs = 1_000;

/** google.rpc.Code INVALID_ARGUMENT. */
const invalidArgument = 3;

export interface AdsStep {
  readonly state: AdsState;
  readonly actions: readonly AdsAction[];
}

export function stepAdsClient(
  options: AdsClientOptions,
  state: AdsState,
  event: AdsEvent,
): AdsStep {
  switch (event.kind) {
    case 'start':
      return connect(state);
    case 'opened': {
      // Nonces belong to a stream, so the first request of a new one has none. After a refusal, parts of the refused
      // response may be in force: no version describes the current state, so none is sent. A plain number is not sent
      // either: a restarted server counts from the beginning, and would take old rules for new ones.
      const isKnown = state.refusedText === undefined && !/^\d+$/.test(state.ackedVersion);
      const pending = isKnown ? state.ackedVersion : '';
      const request = toRequest(options, pending, '');
      return { state: { ...state, phase: 'open' }, actions: [{ kind: 'send', request }] };
    }
    case 'connect-failed':
      return moveOn(options, state);
    case 'ended':
      return moveOn(options, { ...state, hadStream: true });
    case 'waited':
      return state.phase === 'waiting' ? connect(state) : sendPending(state);
    case 'response': {
      if (state.phase !== 'open') return { state, actions: [] };
      const { response } = event;
      // Replaces the previous response, which is no longer answered.
      const next = { ...state, delivered: response, pending: undefined };
      return { state: next, actions: [{ kind: 'deliver', response }] };
    }
    case 'accepted':
      return accept(options, state);
    case 'refused':
      return refuse(options, state, event.text);
  }
}

function connect(state: AdsState): AdsStep {
  const { server } = state;
  return { state: { ...state, phase: 'connecting' }, actions: [{ kind: 'connect', server }] };
}

/** Connects to the next server, at once while one has not failed: a wait only follows when all have. */
function moveOn(options: AdsClientOptions, state: AdsState): AdsStep {
  const { failures, hadStream } = state;
  const server = (state.server + 1) % options.serverCount;
  const failedServers = state.failedServers + 1;
  if (failedServers < options.serverCount) return wait({ ...state, server, failedServers }, 0);
  const next = { ...state, server, failedServers: 0, hadStream: false };
  if (!hadStream) return wait(next, options.connectRetryMs);
  return wait({ ...next, failures: failures + 1 }, backoffDelayMs(options.backoff, failures));
}

function wait(state: AdsState, delayMs: number): AdsStep {
  // A delivered, unanswered response may be in force, or soon be: no version describes the current state.
  const ackedVersion = state.delivered === undefined ? state.ackedVersion : '';
  const next = {
    ...state,
    phase: 'waiting',
    ackedVersion,
    delivered: undefined,
    pending: undefined,
  } as const;
  return { state: next, actions: [{ kind: 'wait', delayMs }] };
}

function accept(options: AdsClientOptions, state: AdsState): AdsStep {
  const { delivered } = state;
  if (delivered === undefined) return { state, actions: [] };
  const { versionInfo = '', nonce = '' } = delivered;
  return {
    state: {
      ...state,
      ackedVersion: versionInfo,
      failures: 0,
      failedServers: 0,
      hadStream: false,
      delivered: undefined,
      refusedText: undefined,
    },
    actions: [{ kind: 'send', request: toRequest(options, versionInfo, nonce) }],
  };
}

function refuse(options: AdsClientOptions, state: AdsState, text: string): AdsStep {
  const { delivered, ackedVersion } = state;
  if (delivered === undefined) return { state, actions: [] };
  const request = {
    ...toRequest(options, ackedVersion, delivered.nonce ?? ''),
    errorDetail: { code: invalidArgument, message: text },
  };
  const next = { ...state, delivered: undefined, refusedText: text };
  if (text !== state.refusedText) return { state: next, actions: [{ kind: 'send', request }] };
  return {
    state: { ...next, pending: request },
    actions: [{ kind: 'wait', delayMs: refusalPauseMs }],
  };
}

function sendPending(state: AdsState): AdsStep {
  const { pending } = state;
  if (pending === undefined) return { state, actions: [] };
  return { state: { ...state, pending: undefined }, actions: [{ kind: 'send', request: pending }] };
}

/** Without resource names: subscribes to all resources (the wildcard). */
function toRequest(
  { node, typeUrl }: AdsClientOptions,
  versionInfo: string,
  responseNonce: string,
): DiscoveryRequestMessage {
  return { versionInfo, node, resourceNames: [], typeUrl, responseNonce };
}
