// Reads nonsensical mapping files of statistics, files of node groups, policies, rule tests, and files with the authors
// of a directory's revisions: each problem of the former has its position, and accepted files work.
import test from 'ava';
import { parsePolicy } from '../../control-plane/authoring/policy/policy-file.ts';
import { findViolations } from '../../control-plane/authoring/policy/violations.ts';
import { runTests } from '../../control-plane/authoring/rehearsal/rule-tests/run-tests.ts';
import { parseTestFile } from '../../control-plane/authoring/rehearsal/rule-tests/test-file.ts';
import { updateText } from '../../control-plane/authoring/rehearsal/rule-tests/update-text.ts';
import { createRulesInTime } from '../../control-plane/authoring/rehearsal/rules-in-time.ts';
import { matchesNode, parseNodeGroups } from '../../control-plane/server/snapshot/node-groups.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../shared/rules/problem/problem-text.ts';
import { parseMapping } from '../../worker/metrics/mapping-file.ts';
import { createMetricMapper } from '../../worker/metrics/metric-mapping.ts';
import { damageText } from './damage.ts';
import dictionary from './dictionary.json' with { type: 'json' };
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const mappings = [
  `mappings:
  - match: ratelimit.service.rate_limit.*.*.near_limit
    name: near_limit
    timer_type: histogram
    labels:
      domain: $1
      key: "\${2}"
  - match: '^a\\.(?P<first>[a-z]+)\\.(.*)$'
    match_type: regex
    name: "m_$1_\${first}"
    match_metric_type: timer
    observer_type: summary
    ttl: 10m
    summary_options: {quantiles: [{quantile: 0.5, error: 0.05}], max_age: 1m, age_buckets: 3}
defaults:
  observer_type: histogram
  histogram_options: {buckets: [0.1, 1, .inf]}
  match_type: glob
  ttl: 1h
`,
  `defaults: {quantiles: [{quantile: 0.9}], buckets: [1, 2]}
mappings:
- match: a.*
  action: drop
  name: dropped
- match: "*.b"
  name: other
  scale: 0.001
  honor_labels: true
  help: text
`,
];
const nodeGroups = [
  `groups:
  - name: edge
    match:
      id: edge-*
      cluster: [eu-*, us-*]
      metadata:
        stage: production
    domains: [shop, mail-*]
  - name: rest
    domains: ['*']
`,
  'groups: [{name: a, domains: []}]\n',
];
const words: readonly string[] = [...dictionary.mappings, 'x'.repeat(3000)];

function checkProblem(problem: Problem): void {
  // The line with the number of further problems has no position.
  if (/^and \d+ more/.test(problem.message)) return;
  const shown = formatProblem(problem);
  checkNamedProblem(problem.message);
  if (problem.hint !== undefined) checkNamedProblem(problem.hint);
  if (problem.line === undefined && problem.path === '') throw new Error(`no place: ${shown}`);
  if (shown.length > 2000) throw new Error(`${shown.length} characters for one problem`);
  if (problem.rule === 'other') throw new Error(`a problem of no kind: ${shown}`);
}
const statistics = ['ratelimit.service.rate_limit.d.k_v.near_limit', 'a.b.c', 'x.b', 'a', '', '..'];

test.serial('any mapping file maps names, or is refused with positions', async (t) => {
  let accepted = 0;
  await fuzz(t, 'mapping files', (random) => {
    const text = damageText(random, random.pick(mappings), words);
    const { mapping, problems } = parseMapping(text, 'mapping.yaml');
    for (const problem of problems) checkProblem(problem);
    if (mapping === undefined) return;
    accepted++;
    const map = createMetricMapper(mapping);
    for (const name of statistics) {
      for (const kind of ['counter', 'gauge', 'observer'] as const) {
        const mapped = map(name, kind);
        if (mapped !== undefined && /undefined/.test(JSON.stringify(mapped.labels))) {
          throw new Error(`labels ${JSON.stringify(mapped.labels)}`);
        }
      }
    }
  });
  t.log(`${accepted} accepted`);
  t.true(accepted > 0);
});

const node = { id: 'edge-1', cluster: 'eu-west', metadata: new Map([['stage', 'production']]) };

test.serial('any file of node groups groups nodes, or is refused with positions', async (t) => {
  let accepted = 0;
  await fuzz(t, 'node-groups files', (random) => {
    const text = damageText(random, random.pick(nodeGroups), words);
    const { groups, problems } = parseNodeGroups(text, ['shop', 'mail-a']);
    for (const problem of problems) checkProblem(problem);
    if (problems.some(({ severity }) => severity === 'error')) return;
    accepted++;
    if (!groups.some((group) => matchesNode(group.match, node))) throw new Error('no group fits');
  });
  t.log(`${accepted} accepted`);
  t.true(accepted > 0);
});

const policies = [
  `owners: platform
policies:
  - domains: [shop, 'mail-*']
    owners: ['*@shop.example']
    require: [name, metadata.owner]
    bounds: [{unit: minute, least: 1, most: 5}]
    largest_factor: 2.5
    unlimited: false
`,
  "policies: [{domains: '*', bounds: [{most: 0}]}]\n",
];
const limited =
  'domain: shop\ndescriptors:\n  - {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}\n  - {key: b, rate_limit: {unlimited: true}}\n';

test.serial('any policy judges rules, or is refused with positions', async (t) => {
  let accepted = 0;
  const { document } = parseRuleDocument(limited, 'rules.yaml');
  await fuzz(t, 'policies', (random) => {
    const text = damageText(random, random.pick(policies), words);
    const { policy, problems } = parsePolicy(text);
    for (const problem of problems) checkProblem(problem);
    if (problems.some(({ severity }) => severity === 'error')) return;
    accepted++;
    for (const { problem } of findViolations(policy, document ? [document] : []))
      checkProblem(problem);
  });
  t.log(`${accepted} accepted`);
  t.true(accepted > 0);
});

const ruleTests = [
  `rules: {domain: shop, descriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 3}}]}
worker: {NEAR_LIMIT_RATIO: 0.5}
tests:
  - name: "a test"   # of many
    domain: shop
    clock: 2026-01-01T00:00:00Z
    requests:
      - {descriptor: {a: x}, at: 90s, hits: 2, times: 2, code: OK, remaining: 1, reset: 60s}
      - descriptors: [{a: x}, [{a: y}, {b: z}]]
        code: OVER_LIMIT
        statuses: [{rule: shop.a, remaining: 3}, {metric_key: none, reset: none}]
    statistics: {shop.a: {total_hits: 5}}
  - name: rows
    domain: shop
    columns: [a=, hits, code, remaining]
    rows:
      - [x, -1, OK, ~]
      - [x, 5, 'OVER_LIMIT']
`,
];

test.serial('any file of rule tests runs and is updated, or refused with positions', async (t) => {
  let accepted = 0;
  await fuzz(t, 'files of rule tests', (random) => {
    const text = damageText(random, random.pick(ruleTests), words);
    const parsed = parseTestFile(text, 'a_test.yaml');
    if (!parsed.ok) {
      for (const problem of parsed.problems) checkProblem(problem);
      return;
    }
    accepted++;
    const documents = parsed.testFile.rules.flatMap((given) =>
      'document' in given ? [given.document] : [],
    );
    const rules = createRulesInTime(documents, { mergeDomains: true, sanitizeMetricDots: false });
    const results = runTests(parsed.testFile, { rules, nowMs: () => 0, reached() {} });
    const failures = results.flatMap((result) => result.failures);
    for (const { problem } of failures) checkProblem(problem);
    const updated = updateText(text, failures);
    const again = parseTestFile(updated.text, 'a_test.yaml');
    if (!again.ok) throw new Error(`an update that cannot be read: ${updated.text}`);
  });
  t.log(`${accepted} accepted`);
  t.true(accepted > 0);
});
