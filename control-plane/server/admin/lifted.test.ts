import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { locateRules } from '../../../shared/rules/lookup/located-rule.ts';
import { documentsAt, toTimeText } from '../../../shared/rules/rule-end.ts';
import { creatingFindLift, listingEndedLifts } from './lifted.ts';
import { listRules, toRow } from './rule-rows.ts';

const sixMs = Date.parse('2026-11-24T18:00:00Z');
const hourMs = 3_600_000;
const { document } = parseRuleDocument(
  `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}
  - {key: user, value: bob, until: 2026-11-24T18:00:00Z, rate_limit: {unit: hour, requests_per_unit: 99}}
  - {key: user, value: root, rate_limit: {unlimited: true}}
  - key: tenant
    value: a
    until: 2026-11-24T19:00:00Z
    rate_limit: {unit: hour, requests_per_unit: 10}
    descriptors:
      - {key: path, rate_limit: {unit: hour, requests_per_unit: 3}}
      - {key: path, value: /, until: 2026-11-24T20:00:00Z, rate_limit: {unlimited: true}}
`,
  'shop.yaml',
);
const documents = document ? [document] : [];

test('an unlimited rule that ends lifts a descriptor until the first end on its path', (t) => {
  const asked = [
    'user=ada',
    'user=bob',
    'user=eve',
    'user=root',
    'tenant=a',
    'tenant=a path=/',
    'tenant=a path=/x',
  ];
  const liftsAt = (nowMs: number) => {
    const find = runAtOnce(creatingFindLift(documents, nowMs));
    return asked.flatMap((text) => {
      const entries = text.split(' ').map((pair) => {
        const [key = '', value = ''] = pair.split('=');
        return { key, value };
      });
      const untilMs = find('shop', entries);
      return untilMs === undefined ? [] : [`${text} ${toTimeText(untilMs)}`];
    });
  };
  t.deepEqual(liftsAt(sixMs - 1), [
    'user=ada 2026-11-24T18:00:00Z',
    'tenant=a path=/ 2026-11-24T19:00:00Z',
  ]);
  t.deepEqual(liftsAt(sixMs), ['tenant=a path=/ 2026-11-24T19:00:00Z']);
  t.deepEqual(liftsAt(sixMs + hourMs), []);
  t.is(
    runAtOnce(creatingFindLift(documents, sixMs - 1))('mail', [{ key: 'user', value: 'ada' }]),
    undefined,
  );
});

test('the rows of rules have the first end on their path, and include no ended rule', (t) => {
  const current = locateRules(documentsAt(documents, sixMs)).get('shop') ?? [];
  const rows = [...listRules('shop', current)].map(toRow);
  t.deepEqual(
    rows.map(({ rule, until }) => `${rule} ${until}`),
    [
      'shop.user null',
      'shop.user_root null',
      'shop.tenant_a 2026-11-24T19:00:00Z',
      'shop.tenant_a.path 2026-11-24T19:00:00Z',
      'shop.tenant_a.path_/ 2026-11-24T19:00:00Z',
    ],
  );
});

test('a change ends the lifts that its rules no longer have, except those already over', (t) => {
  const namesAt = (after: typeof documents, nowMs: number) =>
    runAtOnce(listingEndedLifts(documents, after, nowMs));
  t.deepEqual(namesAt([], sixMs - hourMs), ['shop user_ada', 'shop tenant_a path_/']);
  t.deepEqual(namesAt(documents, sixMs - hourMs), []);
  t.deepEqual(namesAt([], sixMs), ['shop tenant_a path_/']);
});
