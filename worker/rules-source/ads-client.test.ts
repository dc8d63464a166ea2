import test from 'ava';
import fc from 'fast-check';
import type { DiscoveryRequestMessage } from '../../shared/wire/discovery-messages.ts';
import { pluck } from '../../test/support/pluck.ts';
import {
  type AdsAction,
  type AdsClientOptions,
  type AdsEvent,
  type AdsState,
  initialAdsState,
  refusalPauseMs,
  stepAdsClient,
} from './ads-client.ts';

const options: AdsClientOptions = {
  node: { id: 'n' },
  typeUrl: 'type',
  serverCount: 1,
  backoff: { initialMs: 10_000, maxMs: 60_000, multiplier: 1.5, random: undefined },
  connectRetryMs: 3_000,
};

function createRun(from = initialAdsState, serverCount = 1) {
  let state: AdsState = from;
  const give = (...events: AdsEvent[]): AdsAction[] =>
    events.flatMap((event) => {
      const step = stepAdsClient({ ...options, serverCount }, state, event);
      state = step.state;
      return step.actions;
    });
  return { give, state: () => state };
}

const start = { kind: 'start' } as const;
const opened = { kind: 'opened' } as const;
const ended = { kind: 'ended' } as const;
const waited = { kind: 'waited' } as const;
const accepted = { kind: 'accepted' } as const;
const connectFailed = { kind: 'connect-failed' } as const;

function refused(text: string): AdsEvent {
  return { kind: 'refused', text };
}

function response(versionInfo: string, nonce: string): AdsEvent {
  return { kind: 'response', response: { versionInfo, nonce, typeUrl: 'type', resources: [] } };
}

function sends(versionInfo: string, responseNonce: string, message?: string): AdsAction {
  const request: DiscoveryRequestMessage = {
    versionInfo,
    node: { id: 'n' },
    resourceNames: [],
    typeUrl: 'type',
    responseNonce,
  };
  const refusal = message === undefined ? {} : { errorDetail: { code: 3, message } };
  return { kind: 'send', request: { ...request, ...refusal } };
}

function connects(server: number): AdsAction {
  return { kind: 'connect', server };
}

function waits(delayMs: number): AdsAction {
  return { kind: 'wait', delayMs };
}

test('the first request subscribes to everything, with neither version nor nonce', (t) => {
  const { give } = createRun();
  t.deepEqual(give(start), [connects(0)]);
  t.deepEqual(give(opened), [sends('', '')]);
});

test('a response is acknowledged once it is in force, not before', (t) => {
  const { give } = createRun();
  give(start, opened);
  t.deepEqual(pluck(give(response('1', 'a')), 'kind'), ['deliver']);
  t.deepEqual(give(accepted), [sends('1', 'a')]);
});

test('a refusal has the last accepted version, the nonce of the refused response, and the text', (t) => {
  const { give } = createRun();
  give(start, opened, response('1', 'a'));
  t.deepEqual(give(refused('bad 1')), [sends('', 'a', 'bad 1')]);
  give(response('2', 'b'), accepted, response('3', 'c'));
  t.deepEqual(give(refused('bad 3')), [sends('2', 'c', 'bad 3')]);
  give(response('4', 'd'));
  t.deepEqual(give(accepted), [sends('4', 'd')]);
});

// Proof of migrating.md: A new stream begins without a nonce
test('a new stream begins with the last accepted version and without a nonce', (t) => {
  const { give } = createRun();
  give(start, opened, response('v1', 'a'), accepted, ended);
  t.deepEqual(give(waited), [connects(0)]);
  t.deepEqual(give(opened), [sends('v1', '')]);
});

// Proof of migrating.md: A new stream claims no version that is a bare number, which a restarted server gives
// out again
test('a new stream claims no version that is a number: a restarted server counts from the beginning', (t) => {
  const { give } = createRun();
  give(start, opened, response('17', 'a'), accepted, ended, waited);
  t.deepEqual(give(opened), [sends('', '')]);
});

test('after a refusal a new stream claims no version: parts of the refused response may be in force', (t) => {
  const { give } = createRun();
  give(start, opened, response('v1', 'a'), accepted, response('v2', 'b'), refused('bad'), ended);
  give(waited);
  t.deepEqual(give(opened), [sends('', '')]);
  give(response('v1', 'a'), accepted, ended, waited);
  t.deepEqual(give(opened), [sends('v1', '')]);
});

test('waits after lost streams grow to the maximum, and restart after an accepted response', (t) => {
  const { give } = createRun();
  give(start);
  const lose = () => give(opened, ended, waited).find(({ kind }) => kind === 'wait');
  t.deepEqual(
    [lose(), lose(), lose(), lose(), lose(), lose(), lose()],
    [10_000, 15_000, 22_500, 33_750, 50_625, 60_000, 60_000].map(waits),
  );
  give(opened, response('1', 'a'), refused('bad'));
  t.deepEqual(give(ended), [waits(60_000)]);
  give(waited, opened, response('2', 'b'), accepted);
  t.deepEqual(give(ended), [waits(10_000)]);
});

test('attempts without a stream wait the same each time, and do not affect the growth', (t) => {
  const { give } = createRun();
  give(start);
  for (let attempt = 0; attempt < 5; attempt++) {
    t.deepEqual(give(connectFailed), [waits(3_000)]);
    t.deepEqual(give(waited), [connects(0)]);
  }
  t.deepEqual(give(opened, ended).at(-1), waits(10_000));
  give(waited, connectFailed, waited);
  t.deepEqual(give(opened, ended).at(-1), waits(15_000));
});

test('a repeated refusal is delayed, so that a server that resends at once causes no storm', (t) => {
  const { give } = createRun();
  give(start, opened, response('1', 'a'));
  t.deepEqual(give(refused('bad')), [sends('', 'a', 'bad')]);
  give(response('1', 'b'));
  t.deepEqual(give(refused('bad')), [waits(refusalPauseMs)]);
  t.deepEqual(give(waited), [sends('', 'b', 'bad')]);
  t.deepEqual(give(waited), []);
  give(response('2', 'c'));
  t.deepEqual(give(refused('bad in another way')), [sends('', 'c', 'bad in another way')]);
});

test('a delayed refusal is replaced by that of a newer response', (t) => {
  const { give } = createRun();
  give(start, opened, response('1', 'a'), refused('bad'), response('1', 'b'), refused('bad'));
  give(response('2', 'c'));
  t.deepEqual(give(accepted), [sends('2', 'c')]);
  t.deepEqual(give(waited), []);
});

test('a delayed refusal is not sent on another stream', (t) => {
  const { give } = createRun();
  give(start, opened, response('1', 'a'), refused('bad'), response('1', 'b'), refused('bad'));
  t.deepEqual(give(ended), [waits(10_000)]);
  t.deepEqual(give(waited), [connects(0)]);
  t.deepEqual(give(opened, waited), [sends('', '')]);
});

test('the end of a stream ends the wait for the delivered response', (t) => {
  const { give, state } = createRun();
  give(start, opened, response('1', 'a'), ended);
  t.deepEqual(give(accepted), []);
  t.deepEqual(give(refused('bad')), []);
  t.is(state().ackedVersion, '');
});

test('a response that comes after the end of its stream is ignored', (t) => {
  const { give } = createRun();
  give(start, opened, ended);
  t.deepEqual(give(response('1', 'a')), []);
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
      const take = (actions: AdsAction[]) => {
        for (const action of actions) {
          if (action.kind !== 'send') continue;
          t.is(state().phase, 'open');
          const { responseNonce = '' } = action.request;
          if (responseNonce !== '') t.true(open.delete(responseNonce), 'answered on its stream');
        }
        if (actions.some(({ kind }) => kind === 'connect')) {
          open = new Set();
          take(give(opened));
        }
      };
      take(give(start));
      for (const kind of kinds) {
        // The shell only passes these events in the phase to which they belong.
        if (kind === 'connect-failed' || (kind === 'ended' && state().phase !== 'open')) continue;
        if (kind === 'response') {
          const nonce = `n${nonces++}`;
          if (state().phase === 'open') open.add(nonce);
          take(give(response(nonce, nonce)));
        } else take(give({ kind, text: 'same' } as AdsEvent));
      }
    }),
  );
});

test('when a server is lost each other one is tried at once, and only then there is a wait', (t) => {
  const { give } = createRun(initialAdsState, 3);
  give(start, opened, response('v1', 'a'), accepted);
  t.deepEqual(give(ended, waited), [waits(0), connects(1)]);
  t.deepEqual(give(connectFailed, waited), [waits(0), connects(2)]);
  t.deepEqual(give(connectFailed), [waits(10_000)], 'the wait after a stream that ended');
  t.deepEqual(give(waited), [connects(0)]);
  t.deepEqual(give(connectFailed, waited, connectFailed, waited), [
    ...[waits(0), connects(1)],
    ...[waits(0), connects(2)],
  ]);
  t.deepEqual(give(connectFailed), [waits(3_000)], 'there was no stream');
});

test('the waits grow if one of several servers ends each of its streams', (t) => {
  const { give } = createRun(initialAdsState, 2);
  give(start);
  const delays: number[] = [];
  for (let round = 0; round < 4; round++) {
    t.deepEqual(give(opened, ended).at(-1), waits(0));
    give(waited);
    for (const action of give(connectFailed))
      if (action.kind === 'wait') delays.push(action.delayMs);
    give(waited);
  }
  t.deepEqual(delays, [10_000, 15_000, 22_500, 33_750]);
});

test('a server with an accepted response stays in use, and all others may be tried again', (t) => {
  const { give } = createRun(initialAdsState, 2);
  give(start, connectFailed, waited, opened);
  t.deepEqual(give(response('v1', 'a'), accepted).at(-1), sends('v1', 'a'));
  t.deepEqual(give(ended, waited), [waits(0), connects(0)]);
  t.deepEqual(give(opened), [sends('v1', '')]);
});
