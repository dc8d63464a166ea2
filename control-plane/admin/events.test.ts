import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { type AdminEvent, createEvents } from './events.ts';

function start() {
  const clock = createManualClock();
  const state = { newest: 'a', error: '', reads: 0 };
  const snapshots = {
    state() {
      state.reads++;
      return {
        newest: { revision: { id: state.newest } },
        store: { reachable: true, lastError: state.error, lastSuccessMs: clock.wallMs() },
      };
    },
  };
  const sources = {
    snapshots: snapshots as never,
    workers: { list: () => [] },
    rollout: { state: () => undefined },
  };
  const events = createEvents(sources, clock);
  const join = () => {
    const seen: (AdminEvent | 'end')[] = [];
    const leave = events.join({ send: (event) => seen.push(event), end: () => seen.push('end') });
    return { seen, leave };
  };
  return { clock, state, events, join };
}

test('a listener is told at once, when the state changes, and every five seconds', (t) => {
  const { clock, state, join } = start();
  const { seen } = join();
  clock.advance(4_500);
  t.deepEqual(seen.splice(0), ['revisions', 'state']);
  clock.advance(500);
  t.deepEqual(seen.splice(0), ['figures']);
  state.newest = 'b';
  clock.advance(500);
  t.deepEqual(seen.splice(0), ['revisions', 'state']);
  state.error = 'no answer';
  clock.advance(500);
  t.deepEqual(seen, ['state'], 'the revisions are the same');
});

test('nothing is read while nobody listens', (t) => {
  const { clock, state, join } = start();
  clock.advance(60_000);
  t.is(state.reads, 0);
  const { leave } = join();
  clock.advance(1_000);
  const { reads } = state;
  t.true(reads > 0);
  leave?.();
  clock.advance(60_000);
  t.is(state.reads, reads);
});

test('there is a bound for listeners, and all are ended with the control plane', (t) => {
  const { events, join } = start();
  const all = Array.from({ length: 64 }, join);
  t.true(all.every(({ leave }) => leave !== undefined));
  t.is(join().leave, undefined);
  all[0]?.leave?.();
  t.truthy(join().leave);
  events.stop();
  t.is(all[1]?.seen.at(-1), 'end');
  all[1]?.leave?.();
  t.is(join().leave, undefined, 'nobody comes after them');
});
