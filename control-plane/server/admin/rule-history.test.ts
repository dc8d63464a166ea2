import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { withRulesOf } from '../snapshot/building-pieces.ts';
import type { Revision } from '../store/revision.ts';
import { findRuleHistory, type RuleHistorySources } from './rule-history.ts';

const rule = (limit: number, more = '') =>
  `domain: shop\ndescriptors:\n  - key: customer\n    rate_limit: { unit: hour, requests_per_unit: ${limit} }\n${more}`;

/** Creates revisions from their texts, the newest first; ids are numbers, and the oldest is 1. */
function setUp(texts: readonly string[], more: Partial<RuleHistorySources> = {}) {
  const revisions = texts.map((text, index): Revision => {
    const id = `${texts.length - index}`;
    const files = [
      { path: 'd.yaml', text },
      { path: 'other.yaml', text: `domain: other\ndescriptors:\n  - key: k${index}\n` },
    ];
    return {
      ...{ id, atMs: index, author: `author ${id}`, message: undefined },
      files,
      problems: [],
    };
  });
  const parsed: string[] = [];
  const ask = (start = 0, limit = 20, name = 'shop.customer') =>
    findRuleHistory(
      { rule: name, start, limit },
      {
        revisions,
        wasInForce: () => true,
        readRevision: async (id) => revisions.find((each) => each.id === id),
        async readDocument(text, file, rulesOf = '') {
          parsed.push(file);
          const { document, problems } = parseRuleDocument(text, file);
          return { document: document && withRulesOf(document, rulesOf), problems };
        },
        hasTime: () => true,
        ...more,
      },
    );
  return { ask, parsed };
}

async function list(...[texts, more]: Parameters<typeof setUp>): Promise<string[]> {
  const { changes } = await setUp(texts, more).ask();
  return changes.map(({ revision: { id }, before, from, to, texts: what, restores }) => {
    const back = restores === undefined ? '' : `, as in ${restores}`;
    return `${id} after ${before?.id}: ${from} to ${to}${back} [${what}]`;
  });
}

test('each revision that changed the rule is listed with its value before and after, and no others', async (t) => {
  const commented = rule(2).replace('  - key', '  # Agreed.\n  - key');
  const texts = [
    rule(2, '  - key: tenant\n'),
    commented,
    rule(2),
    rule(2, '    shadow_mode: true\n'),
    rule(1, '    metadata: { ticket: a }\n'),
    rule(1),
  ];
  t.deepEqual(await list(texts), [
    '4 after 3: 2 per hour, in shadow mode to 2 per hour [2 per hour, in shadow mode -> 2 per hour]',
    '3 after 2: 1 per hour to 2 per hour, in shadow mode [1 per hour -> 2 per hour, in shadow mode]',
    '2 after 1: 1 per hour to 1 per hour [metadata none -> {"ticket":"a"}]',
    '1 after undefined: undefined to 1 per hour []',
  ]);
});

test('right after a revert, the rule has its old value, and the revision that introduced it is shown', async (t) => {
  t.deepEqual(await list([rule(1), 'domain: e\n', rule(1), rule(9)]), [
    '4 after 3: undefined to 1 per hour, as in 2 [no rule -> 1 per hour]',
    '3 after 2: 1 per hour to undefined [1 per hour -> no rule]',
    '2 after 1: 9 per hour to 1 per hour [9 per hour -> 1 per hour]',
    '1 after undefined: undefined to 9 per hour []',
  ]);
});

test('a revision is compared with the one in force before it, and one with errors is skipped', async (t) => {
  const wasInForce = (index: number) => index !== 1;
  t.deepEqual(await list([rule(1), rule(9), rule(1)], { wasInForce }), [
    '2 after 1: 1 per hour to 9 per hour [1 per hour -> 9 per hour]',
    '1 after undefined: undefined to 1 per hour []',
  ]);
  t.deepEqual(await list(['domain: shop\ndescriptors: [', rule(2), rule(1)]), [
    '2 after 1: 1 per hour to 2 per hour [1 per hour -> 2 per hour]',
    '1 after undefined: undefined to 1 per hour []',
  ]);
});

test('a long history continues where it stopped, and only differing files that may have the domain are parsed', async (t) => {
  const texts = Array.from({ length: 30 }, (_, index) => rule(Math.floor((30 - index) / 10)));
  const { ask, parsed } = setUp(texts);
  const first = await ask(0, 1);
  t.deepEqual([first.changes[0]?.revision.id, first.next], ['30', 1]);
  const rest = await ask(first.next);
  t.deepEqual(
    [rest.changes.map(({ revision }) => revision.id), rest.next],
    [['20', '10', '1'], undefined],
  );
  t.true(parsed.every((file) => file === 'd.yaml'));
  t.true(parsed.length <= 6, `${parsed.length} were parsed`);
  const short = setUp(texts, { hasTime: () => false });
  t.deepEqual(await short.ask(5), { changes: [], next: 6 });
});

test('a rule below others, one with a dot in its domain, and one that ends are found by their names', async (t) => {
  const text = `domain: shop.eu
descriptors:
  - key: plan
    value: free.tier
    descriptors:
      - { key: user, rate_limit: { unit: day, requests_per_unit: 5 } }
      - { key: user, until: 2027-01-01T00:00:00Z, rate_limit: { unlimited: true } }
`;
  const { ask } = setUp([text]);
  const { changes } = await ask(0, 20, 'shop.eu.plan_free.tier.user');
  t.is(changes[0]?.to, '5 per day; unlimited, until 2027-01-01T00:00:00Z');
});
