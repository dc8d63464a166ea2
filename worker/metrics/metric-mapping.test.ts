import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { createDefaultMapping } from './default-mapping.ts';
import { createMetricMapper, type MappingRule } from './metric-mapping.ts';

const base = createDefaultMapping(false);

function show(map: ReturnType<typeof createMetricMapper>, name: string, kind = 'counter') {
  const mapped = map(name, kind as 'counter');
  if (mapped === undefined) return undefined;
  return `${mapped.name}{${mapped.labels.map(([key, value]) => `${key}=${value}`).join(',')}}`;
}

function rule(match: string | RegExp, more: Partial<MappingRule>): MappingRule {
  const [first] = base.rules;
  if (first === undefined) throw new Error('there are default rules');
  const parsed = typeof match === 'string' ? match.split('.') : match;
  return { ...first, labels: [], ...more, match: parsed };
}

function mapperOf(rules: readonly MappingRule[], mostSpecificGlob = false) {
  return createMetricMapper({ ...base, rules, mostSpecificGlob });
}

const byDefault = createMetricMapper(base);
// Proof of migrating.md: Pulled over-limit hits of deeper rules are counted once
testLines(test, new URL('default-mapping.txt', import.meta.url), (given) => {
  const [kind, name = ''] = given.split(' ');
  return show(byDefault, name, kind) ?? 'not mapped';
});

test('globs precede patterns, and the first match of each counts', (t) => {
  const map = mapperOf([
    rule(/^a\./, { name: 'pattern_1' }),
    rule(/b$/, { name: 'pattern_2' }),
    rule('a.*', { name: 'glob_1' }),
    rule('a.b', { name: 'glob_2' }),
  ]);
  t.is(show(map, 'a.b'), 'glob_1{}');
  t.is(show(map, 'a.b.b'), 'pattern_1{}');
  t.is(show(map, 'c.c.b'), 'pattern_2{}');
  t.is(show(map, 'c.c.c'), undefined);
});

test('without an order the most specific glob counts', (t) => {
  const rules = [
    rule('*.b.*', { name: 'middle' }),
    rule('a.*.*', { name: 'first' }),
    rule('a.*.c', { name: 'first_and_last' }),
  ];
  t.is(show(mapperOf(rules, true), 'a.b.c'), 'first_and_last{}');
  t.is(show(mapperOf(rules, true), 'x.b.c'), 'middle{}');
  t.is(show(mapperOf(rules, false), 'a.b.c'), 'middle{}');
});

test('a rule for another kind of metric is skipped', (t) => {
  const map = mapperOf([
    rule('a.*', { name: 'g', metricKind: 'gauge' }),
    rule(/a/, { name: 'o', metricKind: 'observer' }),
    rule(/a/, { name: 'any' }),
  ]);
  t.is(show(map, 'a.b', 'gauge'), 'g{}');
  t.is(show(map, 'a.b', 'observer'), 'o{}');
  t.is(show(map, 'a.b', 'counter'), 'any{}');
});

const braced = (group: string) => `$\{${group}}`;

test('names and labels can contain captures; missing ones are empty', (t) => {
  const labels = [['l', `$2-${braced('1')}-$3-$x`]] as const;
  const glob = mapperOf([rule('a.*.*', { name: `n_${braced('1')}_$2`, labels })]);
  t.is(show(glob, 'a.b.c'), 'n_b_c{l=c-b--}');
  const named = [['l', `$1-${braced('2')}_x-$name-$9-$$1`]] as const;
  const pattern = mapperOf([
    rule(/^a\.(?<name>[^.]*)(\.b)?/, { name: `n_${braced('name')}`, labels: named }),
  ]);
  t.is(show(pattern, 'a.q'), 'n_q{l=q-_x-q--$1}');
});
