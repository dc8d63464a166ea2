import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { type AdminEvent, createEvents } from './events.ts';

function start() {
  const clock = createManualClock();
  const state = {
    newest: 'a',
    trial: undefined as string | undefined,
    error: '',
    outcomes: ['in_force'],
    documents: [] as readonly RuleDocument[],
    reads: 0,
  };
  const snapshots = {
    get documents() {
      return state.documents;
    },
    state() {
      state.reads++;
      return {
        newest: { revision: { id: state.newest } },
        trial: state.trial && { revision: { id: state.trial } },
        store: { reachable: true, lastError: state.error, lastSuccessMs: clock.wallMs() },
      };
    },
  };
  const sources = {
    snapshots: snapshots as never,
    workers: { list: () => [] },
    rollout: {
      state: () => undefined,
      memory: () => ({ outcomes: state.outcomes.map((kind) => ({ kind })) }) as never,
    },
  };
  const events = createEvents(sources, clock);
  /** Reads each event as soon as it arrives. */
  const follow = () => {
    const ending = new AbortController();
    const seen: AdminEvent[] = [];
    const ended = (async () => {
      for await (const event of events.follow(ending.signal)) seen.push(event);
    })();
    return { seen, ended, leave: () => ending.abort() };
  };
  return { clock, state, events, follow };
}

/** Waits until the listener has read all pending events. */
const received = () => new Promise((resolve) => setImmediate(resolve));

test('a listener is notified at once, on changes of state, and every five seconds', async (t) => {
  const { clock, state, follow } = start();
  const { seen } = follow();
  const next = async (ms: number) => {
    clock.advance(ms);
    await received();
    return seen.splice(0);
  };
  t.deepEqual(await next(4_500), ['revisions', 'state']);
  t.deepEqual(await next(500), ['figures']);
  state.newest = 'b';
  t.deepEqual(await next(500), ['revisions', 'state']);
  state.error = 'no answer';
  t.deepEqual(await next(500), ['state'], 'the revisions are the same');
  state.outcomes.unshift('taken_back');
  t.deepEqual(await next(500), ['revisions', 'state'], 'a list of revisions has it');
});

test('everything that a list of revisions or of rules shows is announced as news of the revisions', async (t) => {
  const { clock, state, follow } = start();
  const { seen } = follow();
  const next = async () => {
    clock.advance(500);
    await received();
    return seen.splice(0);
  };
  await next();
  state.trial = 'a';
  t.deepEqual(await next(), ['revisions', 'state'], 'it is on trial');
  state.outcomes.push('held_back');
  t.deepEqual(await next(), ['revisions', 'state'], 'a peer reports what it knew earlier');
  const { document } = parseRuleDocument(
    `domain: d\ndescriptors: [{ key: k, until: ${toTimeText(clock.wallMs() + 1_000)} }]`,
    'd.yaml',
  );
  state.documents = document ? [document] : [];
  t.deepEqual(await next(), []);
  t.deepEqual(await next(), ['revisions', 'state'], 'a rule has ended');
});

test('changes that happen while the listener does not read are sent as one', async (t) => {
  const { clock, events } = start();
  const slow = events.follow(new AbortController().signal);
  t.is((await slow.next()).value, 'revisions');
  clock.advance(20_000);
  t.is((await slow.next()).value, 'state');
  t.is((await slow.next()).value, 'figures');
  const next = slow.next();
  clock.advance(5_000);
  t.is((await next).value, 'figures');
});

test('nothing is read without a listener', async (t) => {
  const { clock, state, follow } = start();
  clock.advance(60_000);
  t.is(state.reads, 0);
  const { leave, ended } = follow();
  await received();
  clock.advance(1_000);
  const { reads } = state;
  t.true(reads > 0);
  leave();
  await ended;
  clock.advance(60_000);
  t.is(state.reads, reads);
});
