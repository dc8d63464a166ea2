// Which maker a change is attributed to if several authors made revisions since the one in force; policy.txt has the
// rest.
import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createRevisionStore, revisionOf } from '../../../test/support/revision-store.ts';
import { toRevisionInfo } from '../store/revision.ts';
import { type BuiltSnapshots, buildSnapshots } from './build.ts';
import type { GovernedRules } from './makers.ts';
import { findingChanged, type Maker } from './makers.ts';
import { judgingByPolicy } from './policy-guard.ts';
import { PolicySteps } from './policy-steps.ts';

const encode = loadProtos().rateLimitConfig.serialize;

function governed(rules: string, policy: string | undefined): BuiltSnapshots {
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

const ada: Maker = { author: 'ada', message: 'x', revision: 'a'.repeat(40) };
const bob: Maker = {
  author: 'bob',
  message: 'x\n\nPolicy-Exception: mine',
  revision: 'b'.repeat(40),
};

/** What is refused of these successive changes. */
function refusedSince(before: GovernedRules, ...made: [GovernedRules, ...Maker[]][]) {
  const after = made.at(-1)?.[0] ?? before;
  const steps = made.map(([rules, ...makers], index) => {
    const last = made[index - 1]?.[0] ?? before;
    return { makers, changed: runAtOnce(findingChanged(last, rules, after.policy)) };
  });
  return runAtOnce(judgingByPolicy(before, after, { steps, isUndo: false })).refused;
}

test('of many owners ten are named, and how many there are beside them', (t) => {
  const owners = Array.from({ length: 12 }, (_, at) => `o${at + 1}`);
  const policy = policyOf(`owners: [${owners}]`);
  const [before, after] = [governed(limit(1), policy), governed(limit(2), policy)];
  t.deepEqual(
    refusedSince(before, [after, bob]).map(({ message }) => message),
    [
      "domain 'shop' is changed by bob, and only o1, o2, o3, o4, o5, o6, o7, o8, o9, o10 and 2 more may change it",
    ],
  );
  const makers = owners.map((revision) => ({ ...bob, revision }));
  t.is(refusedSince(before, [after, ...makers]).length, 10, 'of many makers as well');
});

// Proof of SECURITY.md: refuses or admits every request of the domains that `policy.yaml` does not give to other
// owners
test('each change is judged by who made it, whoever continues from it, until an owner approves it or it is undone', (t) => {
  const policy = policyOf('owners: ada, bounds: [{most: 60}]');
  const rules = (a: number, more = '') =>
    governed(`${limit(a).slice(0, -1)}, {key: b}${more}]`, policy);
  let before = rules(50);
  const other = ', {key: c, rate_limit: {unit: day, requests_per_unit: 1}}';
  const refusedOf = (...steps: [GovernedRules, ...Maker[]][]) => refusedSince(before, ...steps);
  const mine = "domain 'shop' is changed by bob, and only ada may change it";
  const messagesOf = (problems: readonly { message: string }[]) =>
    problems.map(({ message }) => message);
  const tolerated = refusedOf([rules(55), bob], [rules(55, other), ada]);
  t.deepEqual(messagesOf(tolerated), [mine]);
  t.regex(
    tolerated[0]?.hint ?? '',
    /revision bbbbbbbbbbbb made it: revert that, or let an owner approve/,
  );
  t.deepEqual(messagesOf(refusedOf([rules(55), bob], [rules(50, other), ada])), [], 'it is undone');
  t.deepEqual(messagesOf(refusedOf([rules(55), bob], [rules(52, other), ada])), [], 'and so it is');
  const named = governed(`${limit(55, ', name: x').slice(0, -1)}, {key: b}]`, policy);
  t.deepEqual(
    messagesOf(refusedOf([rules(55), bob], [named, ada])),
    [mine],
    'another field of the rule',
  );
  const approved = { ...bob, approvedBy: 'ada' };
  t.deepEqual(messagesOf(refusedOf([rules(55), approved], [rules(55, other), ada])), []);
  const byBob = { ...bob, approvedBy: 'bob' };
  t.deepEqual(messagesOf(refusedOf([rules(55), byBob], [rules(55, other), ada])), [mine]);
  t.deepEqual(
    messagesOf(refusedOf([rules(55, other), bob, ada])),
    [mine],
    'two whose parts are not known',
  );
  const excuse = { ...ada, message: 'x\n\nPolicy-Exception: sale' };
  t.is(refusedOf([rules(70), bob], [rules(70, other), excuse]).length, 2, 'of what bob made');
  t.deepEqual(refusedOf([rules(70), excuse], [rules(70, other), ada]), []);
  const lists = (...windows: string[]) => governed(`[{key: a, rate_limits: [${windows}]}]`, policy);
  const [second, hour, day, week] = ['second', 'hour', 'day', 'week'].map(
    (unit) => `{unit: ${unit}, requests_per_unit: 9}`,
  ) as [string, string, string, string];
  before = lists(second, hour, day);
  t.deepEqual(
    messagesOf(refusedOf([lists(second, hour), bob], [lists(second, hour, week), ada])),
    [mine],
    'another limit of the list',
  );
  t.deepEqual(
    messagesOf(refusedOf([lists(second, hour), bob], [lists(second, hour, day), ada])),
    [],
  );
});

test('a change of the policy is judged by who made each part of it, whoever continues from it', (t) => {
  const policyOf = (shop: string, mail = '') =>
    governed(
      '[]',
      `owners: ada\npolicies: [{domains: shop, ${shop}}, {domains: mail, owners: [m]}${mail}]`,
    );
  const before = policyOf('owners: [s]');
  const isRefused = (...made: [GovernedRules, Maker][]) => refusedSince(before, ...made).length > 0;
  const stolen = policyOf('owners: [s, bob]');
  const other = ', {domains: x, owners: [y]}';
  t.true(isRefused([stolen, bob], [policyOf('owners: [s, bob]', other), ada]), 'another policy');
  t.true(isRefused([stolen, bob], [policyOf('owners: [s, bob], unlimited: false'), ada]));
  t.true(isRefused([stolen, bob], [policyOf('owners: [s, bob] '), ada]), 'blanks');
  t.false(isRefused([stolen, bob], [policyOf('owners: [s]', other), ada]), 'it is undone');
  t.false(isRefused([stolen, bob], [policyOf('owners: [s] '), ada]));
  t.false(isRefused([stolen, bob], [policyOf('owners: [s, t]'), ada]), 'and so it is');
});

test('revisions that cannot be read are by unknown makers', async (t) => {
  const between = () => Promise.reject(new Error('no route to it'));
  const steps = new PolicySteps({
    store: { ...createRevisionStore(revisionOf(2)), between },
    building: { build: () => t.fail('it was built') as never },
    log: createRecordedLog(),
  });
  const from = { revision: toRevisionInfo(revisionOf(1)), built: governed(limit(1), undefined) };
  const [step] = await steps.find(from, revisionOf(2), undefined);
  t.deepEqual(
    step?.makers.map(({ revision }) => revision),
    [undefined, revisionOf(2).id],
  );
});
