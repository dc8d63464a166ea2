import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { PollLoop } from './poll-loop.ts';

test('however many callers ask, and however often, a remote store is polled once per interval', async (t) => {
  const clock = createManualClock();
  let polls = 0;
  const loop = new PollLoop({
    description: 'a remote',
    poll: async () => revisionOf(++polls),
    pollMs: 60_000,
    leastMs: 1_000,
    log: createRecordedLog(),
    clock,
  });
  const first = await loop.read();
  const asked = Array.from({ length: 50 }, () => [loop.read(), loop.trigger()]).flat();
  loop.watch(() => {});
  await loop.exclusively(async () => t.is(polls, 1, 'a write does not wait for it'));
  clock.advance(999);
  t.is(polls, 1);
  clock.advance(1);
  const answers = await Promise.all(asked);
  t.is(polls, 2);
  t.not(answers[0], first, 'an answer is never older than its question');
  const last = loop.read();
  await loop.close();
  await t.throwsAsync(last, { message: 'a remote was closed' });
});
