// Tests the comparison with a store's clock, both clocks controlled by the test.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createClockComparison } from './clock-comparison.ts';
import type { Connection, RawReply } from './connection.ts';

const startMs = 1_700_000_000_000;
const settle = () => new Promise((resolve) => setImmediate(resolve));

function setUp() {
  const clock = createManualClock(startMs);
  const log = createRecordedLog();
  const store = {
    aheadMs: 0,
    roundTripMs: 0,
    reply: undefined as RawReply | undefined,
    opened: 0,
    open: 0,
  };
  let offsetMs = Number.NaN;
  const connection: Connection = {
    ended: new Promise(() => {}),
    send: () => {},
    destroy: () => {
      store.open--;
    },
    async ask() {
      clock.advance(store.roundTripMs / 2);
      const nowMs = clock.wallMs() + store.aheadMs;
      clock.advance(store.roundTripMs / 2);
      const seconds = Math.floor(nowMs / 1000);
      return store.reply ?? [String(seconds), String((nowMs - seconds * 1000) * 1000)];
    },
  };
  const comparison = createClockComparison({
    name: 'store',
    open: async () => {
      store.opened++;
      store.open++;
      return connection;
    },
    offset: {
      set: (value) => {
        offsetMs = value;
      },
      get value() {
        return offsetMs;
      },
    },
    clock,
    log,
  });
  return { clock, log, store, comparison, offset: () => offsetMs };
}

test('the difference is measured at the start and every minute', async (t) => {
  const { clock, log, store, comparison, offset } = setUp();
  store.aheadMs = 40;
  comparison.start();
  await settle();
  t.is(offset(), 40);
  t.is(comparison.describe(), "this clock is 40 ms behind the store's");
  store.aheadMs = -30;
  clock.advance(59_000);
  await settle();
  t.is(offset(), 40);
  clock.advance(1_000);
  await settle();
  t.is(offset(), 30);
  t.is(comparison.describe(), "this clock is 30 ms ahead of the store's");
  t.deepEqual(log.lines, []);
  t.like(store, { opened: 2, open: 0 });
});

test('a difference above 250 ms is warned of once, not each minute, and its end is logged', async (t) => {
  const { clock, log, store, comparison, offset } = setUp();
  store.aheadMs = 251;
  comparison.start();
  await settle();
  for (let minute = 0; minute < 5; minute++) {
    clock.advance(60_000);
    await settle();
  }
  t.is(offset(), 251);
  t.deepEqual(log.lines, [
    "warning store: this clock is 251 ms behind the store's; windows begin and end by this clock: correct it",
  ]);
  store.aheadMs = 0;
  clock.advance(60_000);
  await settle();
  t.is(log.lines[1], 'notice store: the clocks agree again');
});

test('a difference that a slow answer could explain causes no warning', async (t) => {
  const { log, store, comparison } = setUp();
  store.roundTripMs = 1_000;
  store.aheadMs = 600;
  comparison.start();
  await settle();
  t.deepEqual(log.lines, []);
  t.regex(comparison.describe(), /600 ms behind/);
});

test('a store that does not report the time is logged, and asked again', async (t) => {
  const { clock, log, store, comparison } = setUp();
  store.reply = 'OK';
  comparison.start();
  await settle();
  t.is(comparison.describe(), 'its clock is not known: the reply to TIME is not a time');
  store.reply = undefined;
  clock.advance(60_000);
  await settle();
  t.regex(comparison.describe(), /^this clock is 0 ms/);
  t.deepEqual(log.lines, []);
});

test('closing leaves no timer', async (t) => {
  const { clock, comparison } = setUp();
  comparison.start();
  await settle();
  t.is(clock.pending, 1);
  comparison.close();
  t.is(clock.pending, 0);
});
