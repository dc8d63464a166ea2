import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { noPeers, type RolloutFacts } from './facts.ts';
import { createPeerWatch } from './peer-watch.ts';

const answer = (record: string): PeerAnswer<RolloutFacts> => ({
  url: 'http://b',
  value: { record, serves: record, workers: [], gone: [] },
});
const away: PeerAnswer<RolloutFacts> = { url: 'http://c', error: 'HTTP 503', last: undefined };

/** Peers that answer when a test says so. */
function createWatch() {
  const asked: { record: string; answer: (given: PeerAnswer<RolloutFacts>[]) => void }[] = [];
  const heard: string[] = [];
  const clock = createManualClock();
  const watch = createPeerWatch(
    (record) => {
      const { promise, resolve } = Promise.withResolvers<PeerAnswer<RolloutFacts>[]>();
      asked.push({ record, answer: resolve });
      return promise;
    },
    (record) => heard.push(record),
    clock,
  );
  return { watch, asked, heard, clock };
}

const settle = () => new Promise(setImmediate);

test('nothing is known of peers before their first answer', async (t) => {
  const { watch, asked } = createWatch();
  t.is(watch.read('r').unknown, 'waits for the answers of its peers');
  watch.ask('r');
  t.is(watch.read('r').unknown, 'waits for the answers of its peers');
  asked[0]?.answer([answer('r')]);
  await settle();
  t.is(watch.read('r').unknown, undefined);
  t.regex(watch.read('another').unknown ?? '', /waits for peer http:\/\/b to follow/);
});

test('peers are asked one time after the other', async (t) => {
  const { watch, asked } = createWatch();
  watch.ask('first');
  watch.ask('second');
  t.deepEqual(
    asked.map(({ record }) => record),
    ['first'],
  );
  asked[0]?.answer([answer('first')]);
  await settle();
  watch.ask('third');
  t.deepEqual(
    asked.map(({ record }) => record),
    ['first', 'third'],
  );
});

test("a peer's record is noted where it differs from the own one", async (t) => {
  const { watch, asked, heard } = createWatch();
  watch.ask('r');
  asked[0]?.answer([answer('r'), answer('newer'), away]);
  await settle();
  t.deepEqual(heard, ['newer']);
});

test('answers to questions from before are forgotten', async (t) => {
  const { watch, asked, heard } = createWatch();
  watch.ask('r');
  asked[0]?.answer([answer('r')]);
  await settle();
  watch.ask('r');
  watch.reset();
  t.is(watch.read('r').unknown, 'waits for the answers of its peers');
  watch.ask('r');
  t.is(asked.length, 3);
  asked[1]?.answer([answer('late')]);
  await settle();
  t.is(watch.read('r').unknown, 'waits for the answers of its peers');
  t.deepEqual(heard, []);
  asked[2]?.answer([answer('r')]);
  await settle();
  t.is(watch.read('r').unknown, undefined);
});

test('without peers all is known', (t) => {
  const watch = createPeerWatch(undefined, () => t.fail(), createManualClock());
  watch.ask('r');
  t.deepEqual(watch.read('r'), noPeers);
});

test('the answers of peers are as old as the question', async (t) => {
  const { watch, asked, clock } = createWatch();
  t.is(watch.read('r').askedAtMs, Number.NEGATIVE_INFINITY);
  const askedAtMs = clock.monotonicMs();
  watch.ask('r');
  clock.advance(1_500);
  asked[0]?.answer([answer('r')]);
  await settle();
  t.is(watch.read('r').askedAtMs, askedAtMs);
});
