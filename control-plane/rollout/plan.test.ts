import test from 'ava';
import { parseRolloutPlan } from './plan.ts';

function reasonOf(text: string): string {
  const result = parseRolloutPlan(text);
  return result.ok ? 'it is taken' : result.reason;
}

test('a canary is one step before all workers', (t) => {
  t.deepEqual(parseRolloutPlan('canary=10%,hold=60s'), {
    ok: true,
    plan: {
      steps: [{ percent: 10, holdMs: 60_000 }],
      onSilence: 'proceed',
      onIndivisible: 'wait',
      overLimitPoints: 10,
    },
  });
  t.deepEqual(parseRolloutPlan('canary=10%'), parseRolloutPlan('canary=10%,hold=60s'));
});

test('steps have a hold each, and more may be said of all', (t) => {
  t.deepEqual(
    parseRolloutPlan(
      '0.5%:30s, 25%:5m, 100%, on-silence=stop, on-indivisible=proceed, over-limit=5',
    ),
    {
      ok: true,
      plan: {
        steps: [
          { percent: 0.5, holdMs: 30_000 },
          { percent: 25, holdMs: 300_000 },
        ],
        onSilence: 'stop',
        onIndivisible: 'proceed',
        overLimitPoints: 5,
      },
    },
  );
});

const refused: readonly (readonly [string, RegExp])[] = [
  ['100%', /does not begin with a share of the workers, such as 'canary=10%,hold=60s'/],
  ['canary=100%', /does not begin with a share/],
  ['canary=0%', /'0%' gives it to no worker/],
  ['5%:30s,100%:10m', /nothing is held after '100%'/],
  ['5.%:30s', /'5\.%:30s' is no step/],
  ['canary=10', /^canary=10 is no share of the workers, such as 'canary=10%'$/],
  ['canary=10,hold=60', /^canary=10 is no share of the workers, such as 'canary=10%'$/],
  ['canary=10%,hold=1', /the hold '1': the unit is missing/],
  ['canary=10%,hold=1ms', /the hold '1ms' is not 1s to 24h/],
  ['canary=10%,canary=20%', /canary is given twice/],
  ['canary=10%,20%:1s', /either canary=... or a list of steps/],
  ['10%:30s,hold=1s', /hold=... goes with canary=.../],
  ['25%:30s,5%:30s,100%', /larger than the one before/],
  ['100%,5%:30s', /nothing comes after '100%'/],
  ['canary=10%,on-silence=wait', /proceed or stop, not 'wait'/],
  ['canary=10%,on-indivisible=stop', /wait or proceed, not 'stop'/],
  ['canary=10%,over-limit=0', /from 1 to 100, not '0'/],
  ['canary=10%,over-limit=101', /from 1 to 100, not '101'/],
  ['canary=10%,over-limit=1.5', /from 1 to 100, not '1.5'/],
  ['canary=10%,over-limit=', /from 1 to 100, not ''/],
  ['canary=10%,speed=5', /unknown part 'speed' \(one of canary, hold/],
];

for (const [text, reason] of refused) {
  test(`refused: ${text}`, (t) => {
    t.regex(reasonOf(text), reason);
  });
}

test('the over-limit share may be told from one point to a hundred', (t) => {
  for (const points of [1, 100]) {
    const result = parseRolloutPlan(`canary=10%,over-limit=${points}`);
    t.is(result.ok && result.plan.overLimitPoints, points);
  }
});

test('a refusal quotes the beginning of a long text only', (t) => {
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
