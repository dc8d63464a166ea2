import test from 'ava';
import { parseRolloutSteps } from './rollout-steps.ts';

const steps = (count: number) =>
  Array.from({ length: count }, (_, index) => `${index + 1}%:1s`).join();

const taken: readonly (readonly [string, readonly (readonly [number, number])[]])[] = [
  [
    '5%:30s, 25% ,100%',
    [
      [5, 30_000],
      [25, 60_000],
    ],
  ],
  ['99.999%:24h', [[99.999, 86_400_000]]],
  ['0.5%:1s', [[0.5, 1_000]]],
  ['100%', []],
];
for (const [text, expected] of taken) {
  test(`taken: ${text}`, (t) => {
    t.deepEqual(parseRolloutSteps(text), {
      ok: true,
      steps: [...expected, [100, 60_000]].map(([percent, holdMs]) => ({ percent, holdMs })),
    });
  });
}

test('all workers may be watched, too, before other groups follow', (t) => {
  t.deepEqual(parseRolloutSteps('100%:10m'), {
    ok: true,
    steps: [{ percent: 100, holdMs: 600_000 }],
  });
});

test('twenty steps are taken beside the last one', (t) => {
  t.true(parseRolloutSteps(`${steps(20)},100%`).ok);
});

const larger = 'each step has to be larger than the one before';
const refused: readonly (readonly [string, string])[] = [
  [steps(21), 'more than 20 steps'],
  ['', "'' is no step, such as '5%:30s'"],
  ['.5%', "'.5%' is no step, such as '5%:30s'"],
  ['5.%', "'5.%' is no step, such as '5%:30s'"],
  ['101%', "'101%' is no step, such as '5%:30s'"],
  ['5.1234%', "'5.1234%' is no step, such as '5%:30s'"],
  ['5%:', "'5%:' is no step, such as '5%:30s'"],
  ['5%:1', "the hold '1': the unit is missing (one of ns, us, ms, s, m, h)"],
  ['5%:999ms', "the hold '999ms' is not 1s to 24h"],
  ['5%:86400001ms', "the hold '86400001ms' is not 1s to 24h"],
  ['1%,1%', larger],
  ['0.5%,0.4%', larger],
  ['5%,100%,100%', "nothing comes after '100%'"],
  ['100%,5%', "nothing comes after '100%'"],
  ...['0%:10m,5%', '5%,0%', '0.000%'].map((text): [string, string] => [
    text,
    `'${text.split(',').find((each) => each.startsWith('0'))}' gives it to no worker: leave it out, since node groups take their steps one after the other, in the order of their file`,
  ]),
];
for (const [text, reason] of refused) {
  test(`refused: ${text || 'no step at all'}`, (t) => {
    t.deepEqual(parseRolloutSteps(text), { ok: false, reason });
  });
}
