// Tests breakers and their consequences as lines for review: breaker.txt lists calls of the breakers of a store, and the
// effect of each. `REWRITE=1` rewrites the effects.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import { createOutages, type ServerBreaker } from './outages.ts';

/** `CALL SERVER[ REASON]`, or `+SECONDS`: a server is added with its first call. */
testLines(test, new URL('breaker.txt', import.meta.url), (given) => {
  const metrics = createStubMetrics();
  const clock = createManualClock(Date.parse('2026-11-22T10:00:00Z'));
  let effects: string[] = [];
  const onOver = () => void effects.push('all are over');
  const outages = createOutages({ metricPrefix: 'ratelimit.store', metrics, clock, onOver });
  const breakers = new Map<string, ServerBreaker>();
  const lines = given.split(', ').map((text) => {
    effects = [];
    const [call = '', name = '', reason = ''] = text.split(' ');
    if (call.startsWith('+')) clock.advance(Number(call) * 1_000);
    else {
      const breaker =
        breakers.get(name) ??
        outages.addServer(name, (state, before) => effects.push(`${before} -> ${state}`));
      breakers.set(name, breaker);
      if (call === 'open' || call === 'openOnTimeout') breaker[call](reason);
      else if (call !== 'add') breaker[call as 'close' | 'halfOpen' | 'remove']();
      const { state, refusal } = breaker;
      effects.push(`${state}${refusal ? ` refuses (${refusal.code}: ${refusal.message})` : ''}`);
    }
    return effects.join(' and ') || '-';
  });
  const stats = [...metrics.snapshot()].map(
    ([name, value]) => `${name.replace('ratelimit.store.breaker.', '')} ${value}`,
  );
  return (
    [...lines, stats.join(', '), ...outages.describe()].join('; ') +
    (outages.areOver ? '' : '; not over')
  );
});
