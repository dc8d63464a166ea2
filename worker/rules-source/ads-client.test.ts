// Tests the exchange with management servers as lines for review: ads-client.txt lists what happens, and what the client
// does at each event. `REWRITE=1` rewrites what it does.
import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../test/support/reviewed-lines.ts';
import {
  type AdsAction,
  type AdsClientOptions,
  type AdsEvent,
  initialAdsState,
  stepAdsClient,
} from './ads-client.ts';

const options: AdsClientOptions = {
  node: { id: 'n' },
  typeUrl: 'type',
  serverCount: 1,
  backoff: { initialMs: 10_000, maxMs: 60_000, multiplier: 1.5, random: undefined },
  connectRetryMs: 3_000,
};

function createRun(serverCount = 1) {
  let state = initialAdsState;
  const give = (event: AdsEvent): readonly AdsAction[] => {
    const step = stepAdsClient({ ...options, serverCount }, state, event);
    state = step.state;
    return step.actions;
  };
  return { give, state: () => state };
}

/** `response VERSION NONCE`, `refused TEXT`, or the name of an event. */
function toEvent(text: string): AdsEvent {
  const [kind, versionInfo = '', nonce = ''] = text.split(' ');
  const response = { versionInfo, nonce, typeUrl: 'type', resources: [] };
  return { kind, response, text: text.slice(8) } as unknown as AdsEvent;
}

function toText(action: AdsAction): string {
  if (action.kind === 'connect') return `connects to ${action.server}`;
  if (action.kind === 'wait') return `waits ${action.delayMs}`;
  if (action.kind !== 'send') return action.kind;
  const { versionInfo, responseNonce, errorDetail, ...request } = action.request;
  const { node, typeUrl, resourceNames } = request;
  const isExpected = node === options.node && typeUrl === 'type' && resourceNames?.length === 0;
  const refusal = errorDetail ? ` ${errorDetail.code} '${errorDetail.message}'` : '';
  return `sends '${versionInfo}' '${responseNonce}'${refusal}${isExpected ? '' : ' of something else'}`;
}

testLines(test, new URL('ads-client.txt', import.meta.url), (given) => {
  const [, count, events = ''] = /^(?:\((\d) servers\) )?(.*)$/.exec(given) ?? [];
  const { give } = createRun(Number(count ?? 1));
  return events
    .split(', ')
    .map((text) => give(toEvent(text)).map(toText).join(' and ') || '-')
    .join(', ');
});

test('in every case an answer is sent only on the stream of its response, and at most once', (t) => {
  const anyEvent = fc.constantFrom<AdsEvent['kind']>(
    'response',
    'response',
    'accepted',
    'refused',
    'ended',
    'connect-failed',
    'waited',
  );
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 60 }), (kinds) => {
      const { give, state } = createRun();
      let nonces = 0;
      let open = new Set<string>();
      const applyAll = (actions: readonly AdsAction[]) => {
        for (const action of actions) {
          if (action.kind !== 'send') continue;
          t.is(state().phase, 'open');
          const { responseNonce = '' } = action.request;
          if (responseNonce !== '') t.true(open.delete(responseNonce), 'answered on its stream');
        }
        if (actions.some(({ kind }) => kind === 'connect')) {
          open = new Set();
          applyAll(give({ kind: 'opened' }));
        }
      };
      applyAll(give({ kind: 'start' }));
      for (const kind of kinds) {
        // The shell only passes these events in the phase to which they belong.
        if (kind === 'connect-failed' || (kind === 'ended' && state().phase !== 'open')) continue;
        if (kind === 'response') {
          const nonce = `n${nonces++}`;
          if (state().phase === 'open') open.add(nonce);
          applyAll(give(toEvent(`response ${nonce} ${nonce}`)));
        } else applyAll(give({ kind, text: 'same' } as AdsEvent));
      }
    }),
  );
});
