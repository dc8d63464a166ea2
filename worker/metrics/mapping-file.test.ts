import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { parseMapping, readMappingFile } from './mapping-file.ts';
import { createMetricMapper, type Mapping } from './metric-mapping.ts';

function parse(yaml: string): Mapping {
  const { mapping, problems } = parseMapping(yaml, 'm.yaml');
  if (mapping === undefined) throw new Error(JSON.stringify(problems, null, 1));
  return mapping;
}

function tell(yaml: string): string[] {
  return parseMapping(yaml, 'm.yaml').problems.map(
    ({ severity, line, column, path, message }) =>
      `${line}:${column} ${severity} ${path}: ${message}`,
  );
}

test('everything that may be written', (t) => {
  const yaml = `
defaults:
  observer_type: summary
  match_type: glob
  glob_disable_ordering: true
  ttl: 5m
  summary_options:
    quantiles: [{quantile: 0.99, error: 0.001}]
    max_age: 30s
    age_buckets: 3
    buf_cap: 500
  histogram_options: {buckets: [1, 2.5]}
mappings:
  - match: test.*.counter
    name: test_total
    match_metric_type: counter
    help: Text
    labels: {kind: "$1", "on": 5}
    honor_labels: true
    scale: 0.25
    ttl: 1h
  - match: '^a\\.(?P<name>.*)$'
    match_type: regex
    name: "a_\${name}"
    action: drop
    observer_type: histogram
    histogram_options: {buckets: [0.1, 5, .inf]}
  - {match: t.*, name: t, match_metric_type: timer, timer_type: histogram, buckets: [7]}
  - {match: u.*, name: u, quantiles: [{quantile: 1, error: 0}], summary_options: {max_age: 1s}}
  - {match: v.*, name: v, timer_type: histogram, observer_type: summary}
`;
  const mapping = parse(yaml);
  t.deepEqual(tell(yaml), []);
  t.true(mapping.mostSpecificGlob);
  const own = { type: 'summary', quantiles: [0.99], maxAgeMs: 30_000, ageBuckets: 3 };
  t.deepEqual(mapping.unmapped, { observer: own, ttlMs: 300_000 } as Mapping['unmapped']);
  const [counter, pattern, timer, summary, both] = mapping.rules;
  t.deepEqual(counter, {
    match: ['test', '*', 'counter'],
    action: 'map',
    metricKind: 'counter',
    name: 'test_total',
    labels: [
      ['kind', '$1'],
      ['on', '5'],
    ],
    honorLabels: true,
    observer: mapping.unmapped.observer,
    scale: 0.25,
    ttlMs: 3_600_000,
    help: 'Text',
  });
  t.is(pattern?.action, 'drop');
  t.is(pattern?.ttlMs, 300_000);
  t.deepEqual(pattern?.observer, { type: 'histogram', buckets: [0.1, 5] });
  t.is(createMetricMapper(mapping)('a.b.c', 'gauge')?.name, 'a_b.c');
  t.is(timer?.metricKind, 'observer');
  t.deepEqual(timer?.observer, { type: 'histogram', buckets: [7] });
  t.like(summary?.observer, { type: 'summary', quantiles: [1], maxAgeMs: 1000, ageBuckets: 3 });
  t.is(both?.observer.type, 'summary');
});

test('an empty list of mappings maps nothing', (t) => {
  const mapping = parse('mappings: []');
  t.deepEqual(mapping.rules, []);
  t.like(mapping.unmapped.observer, { type: 'summary', quantiles: [0.5, 0.9, 0.99] });
  t.false(mapping.mostSpecificGlob);
});

// Proof of differences.md: Mistakes in a mapping file end the start, all told at once with line and column
test('all problems are told at once, each with its place', (t) => {
  t.deepEqual(
    tell(`defaults:
  ttl: 10
  match_type: prefix
mappings:
  - match: a.*
  - name: x
  - match: a.b*
    name: "a b"
    labels: {1a: x, b: [c]}
    scale: fast
    action: keep
  - match: "("
    match_type: regex
    name: y
    honor_labels: "maybe"
    observer_type: histogram
    summary_options: {}
    histogram_options: {buckets: [2, 1]}
  - text
  - match: z
    name: z
    quantiles: [{quantile: 7}]
    summary_options: {age_buckets: 1000000}
`),
    [
      "3:15 error defaults.match_type: match_type is 'prefix', not glob or regex",
      "2:8 error defaults.ttl: ttl is '10', not a duration such as 90s or 10m",
      "19:5 error mappings[4]: an item of mappings is 'text', not a mapping",
      "5:5 error mappings[0].name: the metric's name is missing",
      '6:5 error mappings[1].match: what to match is missing',
      "7:12 error mappings[2].match: 'a.b*' is not a pattern of parts",
      "11:13 error mappings[2].action: action is 'keep', not map or drop",
      "8:11 error mappings[2].name: 'a b' is not the name of a metric",
      '9:24 error mappings[2].labels.b: b is a list, not text',
      "9:13 error mappings[2].labels: '1a' is not the name of a label",
      "10:12 error mappings[2].scale: scale is 'fast', not a number",
      '12:12 error mappings[3].match: not a regular expression (missing closing ")")',
      "15:19 error mappings[3].honor_labels: honor_labels is 'maybe', not true or false",
      '17:22 error mappings[3].summary_options: summary_options is not for a histogram',
      '18:34 error mappings[3].histogram_options.buckets: the bounds do not grow',
      '22:28 error mappings[5].quantiles[0].quantile: a quantile is a number from 0 to 1',
      '23:36 error mappings[5].summary_options.age_buckets: age_buckets is above 100',
    ],
  );
});

test('a document that is no mapping is a problem', (t) => {
  t.deepEqual(tell(''), ['1:1 error : the document is not a mapping']);
  t.deepEqual(tell('- a'), ['1:1 error : the document is not a mapping']);
  t.deepEqual(tell('mappings: {}'), ['1:11 error mappings: mappings is a mapping, not a list']);
  t.regex(tell('mappings: [').join(), /^\d+:\d+ error : not valid YAML: /);
});

test('fields without effect are warned of', (t) => {
  const yaml = 'mappings: [{match: a.b, name: a, lables: {x: y}}]';
  t.deepEqual(tell(yaml), ['1:34 warning mappings[0].lables: lables has no effect here']);
  t.truthy(parse(yaml));
});

test('a file is read, its warnings are logged and its errors end the start', async (t) => {
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'm.yaml');
  const log = createRecordedLog();

  await writeFile(file, 'mappings: [{match: a.b, name: a, ttl_: 5s}]');
  const mapping = await readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log);
  t.is(mapping?.rules.length, 1);
  t.is(log.lines.length, 1);
  t.true(log.lines[0]?.includes(`${file}:1:34: ttl_ has no effect here`));

  await writeFile(file, 'mappings:\n  - match: a.b\n  - name: c\n');
  const error = await t.throwsAsync(readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log), {
    instanceOf: AppError,
  });
  t.is(error?.code, 'cannot_start');
  t.true(error?.message.includes(`${file}:2:5: error: the metric's name is missing`));
  t.true(error?.message.includes(`${file}:3:5: error: what to match is missing`));
  t.true(error?.message.includes('PROMETHEUS_MAPPER_YAML'));

  await rm(file);
  await mkdir(file);
  const directory = await t.throwsAsync(readMappingFile(file, 'PROMETHEUS_MAPPER_YAML', log), {
    instanceOf: AppError,
  });
  t.is(directory?.code, 'cannot_start');
  t.regex(directory?.message ?? '', /^the mapping file .*m\.yaml cannot be read \(EISDIR/);
});

test('a mapping file that is not there is a warning, and no mapping', async (t) => {
  const log = createRecordedLog();
  t.is(await readMappingFile('/nowhere/m.yaml', 'PROMETHEUS_MAPPER_YAML', log), undefined);
  t.deepEqual(log.lines, [
    'warning PROMETHEUS_MAPPER_YAML: there is no file /nowhere/m.yaml; the default mapping is used',
  ]);
});
