import test from 'ava';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { DomainRules, RuleSet } from '../../shared/rules/rule.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createHealth } from '../health.ts';
import { createRegistry } from '../metrics/registry.ts';
import { RulesInForce } from './rules-in-force.ts';

function ruleSet(domainCount: number, limitCount: number): RuleSet {
  const names = Array.from({ length: domainCount }, (_, index) => `d${index}`);
  return {
    domains: new Map(names.map((domain) => [domain, toDomain(domain)])),
    limitCount,
    describe: () => [],
    trail: () => ['loading domain: d'],
  };
}

function toDomain(domain: string): DomainRules {
  return {
    domain,
    match: () => undefined,
    exempts: () => false,
    nest: () => undefined,
    traceLookup: () => [],
  };
}

function problem(severity: Problem['severity'], message: string): Problem {
  return { ...problemOf(severity, 'other', 'config/a.yaml', message), line: 3, column: 5 };
}

function setUp() {
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 0, log });
  const health = createHealth({ requireConfig: true });
  const clock = createManualClock(1_767_225_600_000);
  const rules = new RulesInForce({ log, metrics, health, clock, portsWait: true });
  return { log, metrics, health, clock, rules };
}

const origin = '2 files from /rules';

test('before the first load there are no rules', (t) => {
  const { rules, health } = setUp();
  t.is(rules.current, undefined);
  t.false(health.healthy);
  t.is(rules.describe(), 'in force: no rules were loaded yet, the gRPC and HTTP ports are closed');
});

test('a good load is in force, counted and healthy', (t) => {
  const { rules, metrics, health, log } = setUp();
  const loaded = ruleSet(1, 3);
  rules.apply({ ok: true, ruleSet: loaded, documents: [], atMs: 0, warnings: [], origin });
  t.is(rules.current, loaded);
  t.true(health.healthy);
  t.is(metrics.snapshot().get('ratelimit.service.config_load_success'), 1);
  t.is(metrics.snapshot().get('ratelimit.service.config_load_error'), 0);
  t.deepEqual(log.lines, [
    'debug loading domain: d',
    'notice Successfully loaded new configuration: 2 files from /rules, 1 domain, 3 limits',
  ]);
  t.is(
    rules.describe(),
    'in force: 2 files from /rules, 1 domain, 3 limits, since 2026-01-01T00:00:00.000Z',
  );
});

test('a bad load keeps the rules, is counted, and names each problem', (t) => {
  const { rules, metrics, health, log, clock } = setUp();
  const loaded = ruleSet(1, 1);
  rules.apply({ ok: true, ruleSet: loaded, documents: [], atMs: 0, warnings: [], origin });
  log.lines.length = 0;
  clock.advance(1000);
  const problems = [problem('error', "unknown key 'kee'"), problem('error', 'key is missing')];
  rules.apply({ ok: false, problems, origin });
  t.is(rules.current, loaded);
  t.true(health.healthy);
  t.is(metrics.snapshot().get('ratelimit.service.config_load_error'), 1);
  t.deepEqual(log.lines, [
    "error Error loading new configuration: config/a.yaml:3:5: unknown key 'kee'",
    'error Error loading new configuration: config/a.yaml:3:5: key is missing; could not load 2 files from /rules (2 errors): the rules loaded before stay in force',
  ]);
  t.is(
    rules.describe(),
    [
      'in force: 2 files from /rules, 1 domain, 1 limit, since 2026-01-01T00:00:00.000Z',
      'last load: failed at 2026-01-01T00:00:01.000Z',
      "config/a.yaml:3:5: error: unknown key 'kee'",
      'config/a.yaml:3:5: error: key is missing',
    ].join('\n'),
  );
});

test('a bad first load logs that the ports stay closed', (t) => {
  const { rules, log, health } = setUp();
  rules.apply({ ok: false, problems: [problem('error', 'x')], origin });
  t.is(rules.current, undefined);
  t.false(health.healthy);
  t.is(
    log.lines.at(-1),
    'error Error loading new configuration: config/a.yaml:3:5: x; could not load 2 files from /rules (1 error): there are no rules, and the gRPC and HTTP ports stay closed until this is repaired',
  );
});

test('a repair is logged at the default level, an ordinary reload only at info', (t) => {
  const { rules, log } = setUp();
  const good = {
    ok: true,
    ruleSet: ruleSet(1, 1),
    documents: [],
    atMs: 0,
    warnings: [],
    origin,
  } as const;
  rules.apply(good);
  rules.apply(good);
  rules.apply({ ok: false, problems: [problem('error', 'x')], origin });
  rules.apply(good);
  const levels = log.lines
    .filter((line) => line.includes('Successfully'))
    .map((l) => l.split(' ')[0]);
  t.deepEqual(levels, ['notice', 'info', 'notice']);
  t.notRegex(rules.describe(), /failed/);
});

test('a load without domains is good and unhealthy', (t) => {
  const { rules, health } = setUp();
  rules.apply({ ok: true, ruleSet: ruleSet(1, 1), documents: [], atMs: 0, warnings: [], origin });
  rules.apply({ ok: true, ruleSet: ruleSet(0, 0), documents: [], atMs: 0, warnings: [], origin });
  t.is(rules.current?.domains.size, 0);
  t.false(health.healthy);
});

test('a warning is logged when it appears, and not again while it remains', (t) => {
  const { rules, log } = setUp();
  const a = problem('warning', 'limit of 0');
  const b = problem('warning', 'not YAML');
  const logged = (warnings: readonly Problem[]) => {
    log.lines.length = 0;
    rules.apply({ ok: true, ruleSet: ruleSet(1, 1), documents: [], atMs: 0, warnings, origin });
    return log.lines.filter((line) => line.includes('Configuration:')).length;
  };
  t.is(logged([a, a]), 1);
  t.is(logged([a, b]), 1);
  rules.apply({ ok: false, problems: [problem('error', 'x'), a], origin });
  t.is(logged([a, b]), 0);
  t.is(logged([]), 0);
  t.is(logged([a]), 1);
});

test('a note is logged at info: it requires no action of an operator', (t) => {
  const { rules, log } = setUp();
  const warnings = [problem('note', 'requests_per_unit is 0')];
  rules.apply({ ok: true, ruleSet: ruleSet(1, 1), documents: [], atMs: 0, warnings, origin });
  t.deepEqual(
    log.lines.filter((line) => line.includes('Configuration:')).map((line) => line.split(' ')[0]),
    ['info'],
  );
});

test('the number of lines about one load is bounded', (t) => {
  const { rules, log } = setUp();
  const problems = Array.from({ length: 500 }, (_, i) => problem('error', `no ${i}`));
  rules.apply({ ok: false, problems, origin });
  t.is(log.lines.length, 51);
  t.regex(log.lines[50] ?? '', /^error Error loading new configuration: 450 more; could not load/);
});

test('only a good load ends the wait for the first one', async (t) => {
  const { rules } = setUp();
  let isOver = false;
  const wait = rules.firstGoodLoad.then(() => {
    isOver = true;
  });
  rules.apply({ ok: false, problems: [], origin });
  await Promise.resolve();
  t.false(isOver);
  rules.apply({ ok: true, ruleSet: ruleSet(1, 1), documents: [], atMs: 0, warnings: [], origin });
  await wait;
  t.true(isOver);
});

test('rules that are removed completely stay in force, and the component of the configuration is unhealthy', (t) => {
  const { rules, health } = setUp();
  rules.apply({ ok: true, ruleSet: ruleSet(1, 1), documents: [], atMs: 0, warnings: [], origin });
  t.true(health.components().get('config'));
  rules.apply({ ok: false, problems: [], origin, isEmptied: true });
  t.false(health.components().get('config'));
  t.is(rules.current?.domains.size, 1);
});
