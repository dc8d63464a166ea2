import test, { type ExecutionContext } from 'ava';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { buildSnapshots } from '../snapshot/build.ts';
import { type GovernedRules, judgeByPolicy } from './policy-guard.ts';

const encode = loadProtos().rateLimitConfig.serialize;

function governed(rules: string, policy: string | undefined): GovernedRules {
  const files = [
    { path: 'shop.yaml', text: `domain: shop\ndescriptors: ${rules}\n` },
    ...(policy === undefined ? [] : [{ path: 'policy.yaml', text: policy }]),
  ];
  const options = { mergeDomains: false, maxResponseBytes: 1_000_000 };
  const outcome = buildSnapshots({ files, problems: [] }, options, { encode });
  if (!outcome.ok) throw new Error(outcome.problems.map(formatProblem).join('\n'));
  return outcome.built;
}

const limit = (number: number, more = '') =>
  `[{key: a, rate_limit: {unit: minute, requests_per_unit: ${number}${more}}}]`;

const policyOf = (fields: string) => `policies: [{domains: shop, ${fields}}]`;

interface Case {
  readonly policy: string;
  readonly before?: string;
  readonly after: string;
  readonly author?: string;
  readonly message?: string;
}

function judge({ policy, before = limit(10), after, author, message }: Case) {
  const info = { author, message, isUndo: false };
  return judgeByPolicy(governed(before, policy), governed(after, policy), info);
}

/** The messages of what is refused. */
const refusals = (given: Case) => judge(given).refused.map(({ message }) => message);

const broken: readonly (readonly [what: string, given: Case, message: string])[] = [
  [
    'a number above the largest',
    { policy: policyOf('bounds: [{unit: minute, most: 20}]'), after: limit(21) },
    'the limit is 21 for one minute, and the policy allows at most 20',
  ],
  [
    'a number below the smallest, in windows of several units',
    { policy: policyOf('bounds: [{least: 5}]'), after: limit(20, ', unit_multiplier: 5') },
    'the limit is 4 for one minute, and the policy asks for at least 5',
  ],
  [
    'a limit without a name',
    { policy: policyOf('require: [name]'), before: '[]', after: limit(10) },
    'the policy requires name, which the limit lacks',
  ],
  [
    'a limit without an owner in its metadata',
    {
      policy: policyOf('require: [metadata.owner, metadata.ticket]'),
      before: '[]',
      after: '[{key: a, metadata: {ticket: 7}, rate_limit: {unit: day, requests_per_unit: 1}}]',
    },
    'the policy requires metadata.owner, which the limit lacks',
  ],
  [
    'an unlimited rule',
    { policy: policyOf('unlimited: false'), after: '[{key: a, rate_limit: {unlimited: true}}]' },
    'the policy forbids unlimited',
  ],
  [
    'a limit that is raised too much at once',
    { policy: policyOf('largest_factor: 3'), after: limit(31) },
    'the limit is raised 3.1 times, and the policy allows 3 times at once',
  ],
  [
    'a limit that is lowered to nothing',
    { policy: policyOf('largest_factor: 3'), after: limit(0) },
    'the limit is lowered without bound, and the policy allows 3 times at once',
  ],
  [
    'a change by somebody else',
    {
      policy: policyOf('owners: [ada, "*@shop.example"]'),
      after: limit(11),
      author: 'bob <bob@x>',
    },
    "domain 'shop' is changed by bob <bob@x>, and only ada, *@shop.example may change it",
  ],
  [
    'a change by nobody known',
    { policy: policyOf('owners: ada'), after: limit(11) },
    "domain 'shop' is changed by an unknown author, and only ada may change it",
  ],
];

for (const [what, given, message] of broken) {
  test(`${what} is refused, and passes with a reason`, (t) => {
    const { refused } = judge(given);
    t.deepEqual(
      refused.map((problem) => problem.message),
      [message],
    );
    t.true(refused.every(isError));
    t.regex(
      refused[0]?.hint ?? '',
      /^the policy is at policy\.yaml:1; if it has to be, give the reason: /,
    );
    const excused = judge({ ...given, message: 'x\n\nPolicy-Exception: Black Friday, #77' });
    t.deepEqual(excused.refused, []);
    t.is(excused.exception, 'Black Friday, #77');
    t.deepEqual(
      excused.tolerated.map((problem) => [problem.severity, problem.message]),
      [['warning', message]],
    );
    t.is(refusals({ ...given, message: 'Policy-Exception:  ' }).length, 1, 'a reason is needed');
  });
}

test('a revision that keeps to the policy passes', (t) => {
  const policy = policyOf(
    'bounds: [{unit: minute, least: 1, most: 20}, {unit: hour, most: 1}], largest_factor: 2, owners: [ada, "*@shop.example"]',
  );
  for (const author of ['ada', 'ada <x@y>', 'Eve <eve@shop.example>']) {
    t.deepEqual(refusals({ policy, after: limit(20), author }), []);
  }
});

test('a violation in force before the policy is told, and refused where it changes', (t) => {
  const policy = policyOf('bounds: [{most: 5}]');
  const same = judge({ policy, before: limit(10), after: `${limit(10).slice(0, -1)}, {key: b}]` });
  t.deepEqual(same.refused, []);
  t.deepEqual(same.tolerated.map(formatProblem), [
    `shop.yaml:2:15: warning: the limit is 10 for one minute, and the policy allows at most 5 [policy]
    descriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}, {key: b}]
                  ^
    hint: the policy is at policy.yaml:1`,
  ]);
  t.is(refusals({ policy, before: limit(10), after: limit(9) }).length, 1);
  const first = judgeByPolicy(undefined, governed(limit(10), policy), {
    author: undefined,
    message: undefined,
    isUndo: false,
  });
  t.deepEqual(first.refused, []);
  t.is(first.tolerated.length, 1);
});

function changePolicy(t: ExecutionContext, author: string, before: string, after: string) {
  const info = { author, message: undefined, isUndo: false };
  const verdict = judgeByPolicy(governed(limit(10), before), governed(limit(90), after), info);
  t.is(verdict.exception, undefined);
  return verdict.refused.map(({ message }) => message);
}

test('a change is judged by the policy that was in force before it', (t) => {
  const before = `owners: platform\n${policyOf('owners: ada, largest_factor: 2')}`;
  const after = policyOf('owners: eve');
  t.deepEqual(changePolicy(t, 'eve', before, after), [
    'the policy is changed by eve, and only platform may change it',
    "domain 'shop' is changed by eve, and only ada may change it",
    'the limit is raised 9 times, and the policy allows 2 times at once',
  ]);
});

test('an undo changes rules whatever the policy says, but not the policy', (t) => {
  const before = `owners: platform\n${policyOf('owners: ada, largest_factor: 2')}`;
  const after = policyOf('owners: eve, bounds: [{most: 5}]');
  const undo = (policy: string) => {
    const info = { author: 'eve', message: undefined, isUndo: true };
    const { refused } = judgeByPolicy(
      governed(limit(10), before),
      governed(limit(90), policy),
      info,
    );
    return refused.map(({ message }) => message);
  };
  t.deepEqual(undo(before), []);
  t.deepEqual(undo(after), ['the policy is changed by eve, and only platform may change it']);
});

test('other domains are free', (t) => {
  const policy = 'policies: [{domains: "mail*", unlimited: false, owners: ada}]';
  t.deepEqual(refusals({ policy, after: '[{key: a, rate_limit: {unlimited: true}}]' }), []);
});
