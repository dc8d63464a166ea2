// How plans of rollouts are parsed, as lines for review: plan.txt. `REWRITE=1` rewrites the results.
import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { parseRolloutPlan, planOf } from './plan.ts';

function reasonOf(text: string): string {
  const result = parseRolloutPlan(text);
  return result.ok ? 'it is taken' : result.reason;
}

testLines(test, new URL('plan.txt', import.meta.url), (text) => {
  const result = parseRolloutPlan(text);
  if (!result.ok) return result.reason;
  const { steps, onSilence, onIndivisible, overLimitPoints } = result.plan;
  const each = steps.map(({ percent, holdMs }) => `${percent} % for ${holdMs} ms`);
  return `${each.join(', ')}; silent: ${onSilence}; indivisible: ${onIndivisible}; ${overLimitPoints} points over limit`;
});

test('a refusal quotes only the beginning of a long text', (t) => {
  const long = 'x'.repeat(10_000);
  for (const text of [
    long,
    `canary=10%,${'p'.repeat(10_000)}=1`,
    `canary=10%,on-silence=${long}`,
  ]) {
    const reason = reasonOf(text);
    t.regex(reason, /[xp]{60}\.\.\./);
    t.true(reason.length < 300, `${reason.length} characters`);
  }
});

test('steps on record that only another version can read are replaced by cautious ones', (t) => {
  t.like(planOf('of another version'), {
    steps: [{ percent: 10, holdMs: 60_000 }],
    onSilence: 'stop',
  });
});
