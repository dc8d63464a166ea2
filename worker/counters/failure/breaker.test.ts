// Tests the states of breakers and their consequences, on a clock that is advanced by hand.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import { createOutages } from './outages.ts';

function setUp() {
  const metrics = createStubMetrics();
  const clock = createManualClock(Date.parse('2026-11-22T10:00:00Z'));
  const changes: string[] = [];
  let over = 0;
  const outages = createOutages({
    metricPrefix: 'ratelimit.store',
    metrics,
    clock,
    onOver: () => over++,
  });
  const add = (name: string) =>
    outages.addServer(name, (state, before) => changes.push(`${name}: ${before} -> ${state}`));
  const stats = () => Object.fromEntries(metrics.snapshot());
  return { outages, add, changes, stats, clock, overs: () => over };
}

test('a breaker opens, tries a batch, and closes, and each change is reported once', (t) => {
  const { add, changes } = setUp();
  const breaker = add('a');
  t.is(breaker.refusal, undefined);
  breaker.halfOpen();
  breaker.close();
  breaker.openOnTimeout('silent');
  breaker.open('refused');
  t.like(breaker.refusal, { message: 'a: refused', code: 'store' });
  breaker.halfOpen();
  breaker.halfOpen();
  t.is(breaker.state, 'half-open');
  t.truthy(breaker.refusal, 'half-open: decisions are refused but for one batch');
  breaker.close();
  t.is(breaker.state, 'closed');
  t.is(breaker.refusal, undefined);
  t.deepEqual(changes, ['a: closed -> open', 'a: open -> half-open', 'a: half-open -> closed']);
});

test('a server that refused connections and accepts them again needs no trial', (t) => {
  const { add, changes } = setUp();
  const breaker = add('a');
  breaker.open('refused');
  breaker.halfOpen();
  t.deepEqual(changes, ['a: closed -> open', 'a: open -> closed']);
  breaker.openOnTimeout('silent');
  breaker.halfOpen();
  breaker.close();
  breaker.open('refused');
  breaker.halfOpen();
  t.is(breaker.state, 'closed', 'also after an outage of the other kind');
});

test('a failed trial opens the breaker again, and the next batch is a trial too', (t) => {
  const { add, changes, stats } = setUp();
  const breaker = add('a');
  breaker.openOnTimeout('silent');
  breaker.halfOpen();
  breaker.open('the connection was closed');
  t.is(breaker.state, 'open');
  t.is(changes.at(-1), 'a: half-open -> open');
  breaker.halfOpen();
  t.is(breaker.state, 'half-open');
  t.is(stats()['ratelimit.store.breaker.opened'], 2);
});

test('statistics count how many are open, and how often they were opened and closed', (t) => {
  const { add, stats } = setUp();
  const [first, second] = [add('a'), add('b')];
  first.openOnTimeout('x');
  second.open('x');
  t.is(stats()['ratelimit.store.breaker.open'], 2);
  first.halfOpen();
  t.is(stats()['ratelimit.store.breaker.open'], 1);
  first.close();
  second.remove();
  t.deepEqual(stats(), {
    'ratelimit.store.breaker.open': 0,
    'ratelimit.store.breaker.opened': 2,
    'ratelimit.store.breaker.closed': 1,
  });
});

test('the outages are over when the last breaker is closed or removed', (t) => {
  const { outages, add, overs, stats } = setUp();
  const [first, second, third] = [add('a'), add('b'), add('c')];
  for (const breaker of [first, second, third]) breaker.openOnTimeout('x');
  first.halfOpen();
  first.close();
  t.is(overs(), 0);
  t.false(outages.areOver);
  second.halfOpen();
  second.close();
  third.remove();
  third.remove();
  t.is(overs(), 1);
  t.true(outages.areOver);
  t.is(stats()['ratelimit.store.breaker.opened'], 3);
  first.open('x');
  first.halfOpen();
  t.is(overs(), 2);
});

test('removing a server that was reachable ends no outage', (t) => {
  const { outages, add, overs, stats } = setUp();
  const [away, well] = [add('a'), add('b')];
  well.remove();
  t.is(overs(), 0);
  away.open('x');
  t.is(stats()['ratelimit.store.breaker.open'], 1);
  away.remove();
  t.is(stats()['ratelimit.store.breaker.open'], 0);
  t.is(overs(), 1);
  t.deepEqual(outages.describe(), []);
});

test('an unreachable server is listed with the reason and since when', (t) => {
  const { outages, add, clock } = setUp();
  const breaker = add('key-value store h:1');
  add('key-value store h:2');
  t.deepEqual(outages.describe(), []);
  breaker.openOnTimeout('no answer in 500 ms');
  clock.advance(60_000);
  breaker.halfOpen();
  t.deepEqual(outages.describe(), [
    'key-value store h:1: no answer in 500 ms (away since 2026-11-22T10:00:00.000Z, half-open)',
  ]);
});
