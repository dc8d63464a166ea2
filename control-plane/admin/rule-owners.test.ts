import test from 'ava';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { createRuleOwners, isInShadowMode, nameRules } from './rule-owners.ts';

const row = (rule: string, modes: string[] = []) => ({
  rule,
  entries: [],
  limits: [],
  perMinute: null,
  modes,
  until: null,
  owner: null,
  file: 'd.yaml',
  line: 1,
});
const owners = createRuleOwners([
  row('d.user'),
  row('d.user.plan', ['shadow_mode']),
  row('d.path_/a/*'),
]);

test('counts belong to the rule with the longest name that their metric key begins with', (t) => {
  const all = ['d.user', 'd.user_ada', 'd.user.minute', 'd.user.plan_free', 'd.path_/a/*'];
  const others = ['d.username', 'other.user'];
  const series = [...all, ...others].map((rule) => ({
    rule,
    hits: [1],
    overLimit: [],
    nearLimit: [],
  }));
  t.deepEqual(
    nameRules(series, owners).map(({ rule }) => rule),
    ['d.user', 'd.user', 'd.user', 'd.user.plan', 'd.path_/a/*', ...others],
  );
});

test('a rule in shadow mode is known by its metric key', (t) => {
  t.true(isInShadowMode(owners.find('d.user.plan_free')));
  t.false(isInShadowMode(owners.find('d.user_ada')));
  t.false(isInShadowMode(owners.find('other')));
});

test('thousands of long metric keys that no rule has cost next to nothing', (t) => {
  // As many, and as long, as links may name; one by one they took fifteen seconds.
  const keys = Array.from({ length: 20_000 }, (_, index) => `d.${index}`.padEnd(1_024, '._'));
  const beforeMs = cpuMs();
  const found = keys.filter((key) => owners.find(key) !== undefined);
  t.deepEqual(found, []);
  t.true(cpuMs() - beforeMs < 3_000);
});
