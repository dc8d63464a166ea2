// Tests how the policy answers hits that the store has not counted, and that it leaves no timers behind.
import test from 'ava';
import { AppError } from '../../../shared/errors.ts';
import { createHit } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import type { Hit } from '../store.ts';
import type { AnsweringMode } from './failure-mode.ts';
import { createFailurePolicy } from './failure-policy.ts';

const failure = new AppError('store', 'key-value store h:1: connect ECONNREFUSED');

function setUp(mode: AnsweringMode, { isAway = false } = {}) {
  const metrics = createStubMetrics();
  const clock = createManualClock();
  const log = createRecordedLog();
  const policy = createFailurePolicy({ mode, metrics, clock, log, outagesAreOver: () => !isAway });
  const answer = (hits: readonly Hit[]) =>
    new Promise<AppError | undefined>((resolve) => policy.answer(hits, 'add', failure, resolve));
  const counted = async (hits: number) => {
    const hit = createHit({ key: 'a', hits, limit: 10 });
    const error = await answer([hit]);
    return error ?? hit.after;
  };
  return { policy, metrics, clock, log, answer, counted };
}

for (const mode of ['allow', 'deny'] as const) {
  test(`${mode}: counts the decision and none of its hits`, async (t) => {
    const { metrics, clock, counted, policy } = setUp(mode);
    t.is(await counted(3), -1);
    t.is(await counted(3), -1);
    t.is(metrics.counter(`ratelimit.failure_mode.${mode}`).value, 2);
    clock.advance(3_500);
    t.is(
      policy.describe(),
      `KVSTORE_FAILURE_MODE=${mode}: 2 decisions answered without the store, the last 3s ago: ${failure.message}`,
    );
  });
}

test('local: hits are counted in this process, and discarded when the store recovers', async (t) => {
  const { counted, policy } = setUp('local');
  t.is(await counted(3), 3);
  t.is(await counted(4), 7);
  t.regex(
    policy.describe(),
    /2 decisions answered without the store, .*, 1 counters in this process$/,
  );
  policy.storeIsBack();
  t.is(await counted(2), 2);
});

test('local: hits are also discarded when a store that stayed reachable has not failed for a while', async (t) => {
  const { counted, clock, log, policy } = setUp('local');
  t.is(await counted(3), 3);
  clock.advance(20_000);
  t.is(await counted(4), 7);
  clock.advance(29_000);
  t.regex(policy.describe(), /, 1 counters in this process$/);
  clock.advance(1_000);
  t.regex(
    policy.describe(),
    /2 decisions answered without the store, the last 30s ago: (?!.*counters)/,
  );
  t.is(
    log.lines.at(-1),
    'warning the store has not failed for 30 s; 2 decisions were answered without it (KVSTORE_FAILURE_MODE=local)',
  );
  t.is(clock.pending, 0);
  t.is(await counted(2), 2);
});

test('local: hits are retained while a server is unreachable, however rarely it is called', async (t) => {
  const { counted, clock } = setUp('local', { isAway: true });
  t.is(await counted(3), 3);
  clock.advance(60_000);
  t.is(await counted(4), 7);
});

test('a store that recovers before then leaves no timer, and nothing is logged twice', async (t) => {
  const { counted, clock, log, policy } = setUp('local');
  await counted(3);
  policy.storeIsBack();
  t.is(clock.pending, 0);
  clock.advance(60_000);
  t.is(log.lines.length, 2);
});

test('local: a counter ends with its window', async (t) => {
  const { counted, clock } = setUp('local', { isAway: true });
  t.is(await counted(3), 3);
  clock.advance(86_400_000 * 400);
  t.is(await counted(2), 2);
});

test('the failure is logged at once, then with a count every few seconds, and when it is over', async (t) => {
  const { answer, clock, log, policy } = setUp('allow');
  for (let round = 0; round < 1_000; round++) await answer([createHit({ key: 'a' })]);
  clock.advance(6_000);
  await answer([createHit({ key: 'a' })]);
  policy.storeIsBack();
  t.deepEqual(log.lines, [
    `error a decision was allowed without the store: ${failure.message}`,
    `error a decision was allowed without the store: ${failure.message} (and 999 more like it)`,
    'warning the store counts again; 1001 decisions were answered without it (KVSTORE_FAILURE_MODE=allow)',
  ]);
});

test('when no decision was answered without the store, its recovery is not logged', (t) => {
  const { log, policy } = setUp('deny');
  policy.storeIsBack();
  t.deepEqual(log.lines, []);
});
