import test from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { buildSnapshots } from './build.ts';
import { countServed, describeFewer } from './served.ts';

const encode = loadProtos().rateLimitConfig.serialize;
const toDomain = (domain: string, limits: number) => ({
  path: `${domain}.yaml`,
  text: `domain: ${domain}\ndescriptors:\n${Array.from({ length: limits }, (_, at) => `  - {key: k${at}, rate_limit: {unit: day, requests_per_unit: 1}}\n`).join('')}`,
});

function countsOf(groups?: string) {
  const file =
    groups === undefined ? [] : [{ path: 'node-groups.yaml', text: `groups:\n${groups}` }];
  const files = [toDomain('mail', 1), ...file, toDomain('shop', 20)];
  const options = { mergeDomains: false, maxResponseBytes: 1_000_000 };
  const outcome = buildSnapshots({ files, problems: [] }, options, { encode });
  if (!outcome.ok) throw new Error(outcome.problems[0]?.message);
  return countServed(outcome.built);
}

test('without groups every node gets all limits', (t) => {
  const counts = countsOf();
  t.deepEqual(counts, { domains: 2, limits: 21, fewer: [], fewerInAll: 0 });
  t.is(describeFewer(counts), undefined);
});

test('limits that no node gets are not counted', (t) => {
  t.like(countsOf('  - {name: all, domains: []}\n'), { domains: 0, limits: 0, fewerInAll: 0 });
  t.like(countsOf('  - {name: all, domains: [mail]}\n'), { domains: 1, limits: 1, fewerInAll: 0 });
});

test('groups whose nodes get fewer than others are named, the first ones', (t) => {
  const rest = "  - {name: rest, domains: ['*']}\n";
  const canary = countsOf(`  - {name: canary, match: {id: c-*}, domains: [mail]}\n${rest}`);
  t.like(canary, { domains: 2, limits: 21 });
  t.is(describeFewer(canary), "nodes of group 'canary' get 1 of 21 limits");
  const many = Array.from(
    { length: 30 },
    (_, at) => `  - {name: g${at}, match: {id: g${at}}, domains: []}\n`,
  ).join('');
  const counts = countsOf(`${many}${rest}`);
  t.is(counts.fewer.length, 20);
  t.regex(
    describeFewer(counts) ?? '',
    /'g2' get 0 of 21 limits, nodes of 27 more groups get fewer$/,
  );
});
