// Mapping files of statistics, files of node groups, and those of who made the revisions of a directory that
// nobody meant: each problem of the former has its place, and what is accepted does its work.
import test from 'ava';
import { matchesNode } from '../../control-plane/snapshot/node-group.ts';
import { parseNodeGroups } from '../../control-plane/snapshot/node-groups-file.ts';
import { parseAttribution } from '../../control-plane/store/directory-attribution.ts';
import type { Problem } from '../../shared/rules/problem.ts';
import { formatProblem } from '../../shared/rules/problem-text.ts';
import { parseMapping } from '../../worker/metrics/mapping-file.ts';
import { createMetricMapper } from '../../worker/metrics/metric-mapping.ts';
import { damageText } from './damage.ts';
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
const words: readonly string[] = [
  ...[
    '- ',
    ': ',
    '[',
    ']',
    '{',
    '}',
    ',',
    '*',
    '**',
    '$1',
    '$',
    '${',
    '(',
    ')',
    '(?P<a>',
    '.*',
    '\\',
  ],
  ...[
    '\n',
    '  ',
    '&a ',
    '*a',
    '<<: ',
    '.inf',
    '-.inf',
    '.nan',
    '-1',
    '0',
    '1e400',
    '0.5',
    '1e9',
    'null',
  ],
  ...['match:', 'name:', 'groups:', 'domains:', 'mappings:', 'buckets: [', 'age_buckets: 1000000'],
  ...['quantile: 2', 'ttl: -1s', 'regex', 'x'.repeat(3000), '"', "'", '|\n'],
];

function checkProblem(problem: Problem): void {
  // That there are more has no place.
  if (/^and \d+ more/.test(problem.message)) return;
  const shown = formatProblem(problem);
  checkNamedProblem(problem.message);
  if (problem.hint !== undefined) checkNamedProblem(problem.hint);
  if (problem.line === undefined && problem.path === '') {
    throw new Error(`no place: ${shown}`);
  }
  if (shown.length > 2000) throw new Error(`${shown.length} characters for one problem`);
  if (problem.rule === 'other') {
    throw new Error(`a problem of no kind: ${shown}`);
  }
}
const statistics = ['ratelimit.service.rate_limit.d.k_v.near_limit', 'a.b.c', 'x.b', 'a', '', '..'];

test.serial('any mapping file maps names, or is refused with places', async (t) => {
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

test.serial('any file of node groups groups nodes, or is refused with places', async (t) => {
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

const revision = { id: '5d0c1a2b'.repeat(5), atMs: 1_700_000_000_000.5 };
const attributions = [
  JSON.stringify({ format: 1, revisions: [{ ...revision, author: 'Ann', message: 'a\n\nb' }] }),
  JSON.stringify({ format: 1, revisions: [revision, { ...revision, message: 'Rollout: now' }] }),
  '{"format":1,"revisions":[]}',
];

test.serial(
  'any file of who made the revisions is ignored, or names some within bounds',
  async (t) => {
    let accepted = 0;
    await fuzz(t, 'attribution files', (random) => {
      const text = damageText(random, random.pick(attributions), words);
      for (const { id, atMs, author, message } of parseAttribution(text) ?? []) {
        accepted++;
        new Date(atMs).toISOString();
        if (!/^[0-9a-f]{40}$/.test(id)) throw new Error(`the id ${id}`);
        for (const info of [author, message]) {
          if (info !== undefined && (info.length > 4096 || !info.isWellFormed())) {
            throw new Error(`${info.length} characters of a text`);
          }
        }
      }
    });
    t.log(`${accepted} accepted`);
    t.true(accepted > 0);
  },
);
