import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { findFirstAnswer } from './first-answer.ts';

function setUp(...servers: string[]) {
  const stopping = new AbortController();
  const clock = createManualClock();
  const asked: string[] = [];
  const signals: AbortSignal[] = [];
  const calls = new Map<string, PromiseWithResolvers<string>>();
  const found = findFirstAnswer<string, string>(
    {
      servers,
      ask(server, signal) {
        asked.push(server);
        signals.push(signal);
        const call = Promise.withResolvers<string>();
        calls.set(server, call);
        return call.promise;
      },
      show: (server) => `server ${server}`,
      clock,
    },
    stopping.signal,
  );
  const answer = (server: string, text: string) => calls.get(server)?.resolve(text);
  const fail = async (server: string, reason: string) => {
    calls.get(server)?.reject(new Error(reason));
    await turn();
  };
  return { found, clock, asked, signals, answer, fail, stopping };
}

test('a server that answers in time is the only one that is asked', async (t) => {
  const { found, clock, asked, signals, answer } = setUp('a', 'b');
  clock.advance(249);
  answer('a', 'yes');
  t.deepEqual(await found, { server: 'a', answer: 'yes' });
  clock.advance(1_000);
  t.deepEqual(asked, ['a']);
  t.true(signals[0]?.aborted, 'the request to the other server is aborted');
});

test('while a slow server may still answer, the next is asked as well', async (t) => {
  const { found, clock, asked, answer } = setUp('a', 'b', 'c');
  clock.advance(250);
  t.deepEqual(asked, ['a', 'b']);
  clock.advance(249);
  t.deepEqual(asked, ['a', 'b']);
  clock.advance(1);
  t.deepEqual(asked, ['a', 'b', 'c']);
  answer('a', 'late');
  t.deepEqual(await found, { server: 'a', answer: 'late' });
});

test('a server that is aborted because another has answered causes no further question', async (t) => {
  const { found, clock, asked, answer, fail } = setUp('a', 'b', 'c', 'd');
  clock.advance(250);
  answer('a', 'yes');
  await found;
  await fail('b', 'given up');
  clock.advance(1_000);
  t.deepEqual(asked, ['a', 'b']);
  t.is(clock.pending, 0);
});

test('no further server is asked once the caller has disconnected', async (t) => {
  const { found, clock, asked, fail, stopping } = setUp('a', 'b', 'c');
  const refused = t.throwsAsync(found, { message: 'server a: gone' });
  stopping.abort();
  await fail('a', 'gone');
  await refused;
  t.deepEqual(asked, ['a']);
  t.is(clock.pending, 0);
});

test('after a failure the next is asked at once, and has its full time', async (t) => {
  const { found, clock, asked, fail, answer } = setUp('a', 'b', 'c');
  clock.advance(200);
  await fail('a', 'refused');
  t.deepEqual(asked, ['a', 'b']);
  clock.advance(249);
  t.deepEqual(asked, ['a', 'b']);
  clock.advance(1);
  t.deepEqual(asked, ['a', 'b', 'c']);
  answer('c', 'yes');
  t.deepEqual(await found, { server: 'c', answer: 'yes' });
});

test('when none has an answer, the failure of each is reported', async (t) => {
  const { found, fail } = setUp('a', 'b');
  const refused = t.throwsAsync(found, { message: 'server a: refused; server b: no route' });
  await fail('a', 'refused');
  await fail('b', 'no route');
  await refused;
});
