import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createChangeTurns } from './change-turns.ts';

const busy = { message: 'others are changing the rules at the same time; try again' };

test('a change is made when the previous one has ended, even if that failed', async (t) => {
  const turns = createChangeTurns(createManualClock());
  const first = Promise.withResolvers<string>();
  const made: string[] = [];
  const failing = turns.queue(() => {
    made.push('first');
    return first.promise;
  });
  const next = turns.queue(async () => made.push('second'));
  await Promise.resolve();
  t.deepEqual(made, ['first']);
  first.reject(new Error('the disk is full'));
  await t.throwsAsync(failing, { message: 'the disk is full' });
  t.is(await next, 2);
});

test('a change whose turn does not come within a minute is refused, and not made later', async (t) => {
  const clock = createManualClock();
  const turns = createChangeTurns(clock);
  const first = Promise.withResolvers<void>();
  const made: string[] = [];
  const before = turns.queue(() => first.promise);
  const late = turns.queue(async () => made.push('late'));
  await Promise.resolve();
  clock.advance(59_999);
  const next = turns.queue(async () => made.push('next'));
  clock.advance(1);
  await t.throwsAsync(late, busy);
  first.resolve();
  await Promise.all([before, next]);
  t.deepEqual(made, ['next']);
});

test('at most a hundred changes wait for their turn', async (t) => {
  const turns = createChangeTurns(createManualClock());
  const first = Promise.withResolvers<void>();
  const running = turns.queue(() => first.promise);
  await Promise.resolve();
  const waiting = Array.from({ length: 100 }, () => turns.queue(async () => 'made'));
  await t.throwsAsync(
    turns.queue(async () => 'made'),
    busy,
  );
  first.resolve();
  await running;
  t.deepEqual(await Promise.all(waiting), Array(100).fill('made'));
  t.is(await turns.queue(async () => 'made'), 'made');
});
