import test from 'ava';
import { mergeTop, type TopJson, withLifts } from './top-json.ts';

function topOf(count: number, unlistedAtMost: number, name = 'ada'): TopJson {
  return {
    workers: 2,
    values: [
      {
        domain: 'd',
        rule: 'd.k',
        entries: [{ key: 'k', value: name }],
        atLeast: count,
        atMost: count,
        perSecond: count / 60,
        perSecondBefore: null,
        workers: 2,
      },
    ],
    unlistedAtMost,
    rules: [
      {
        rule: 'd.k',
        hitsPerSecond: 2,
        overLimitPerSecond: 1,
        nearLimitPerSecond: 0,
        shadowMode: name === 'ada',
      },
    ],
    missing: [],
  };
}

test('the answers of peers are added, and a peer that is away is named', (t) => {
  const top = mergeTop(
    topOf(60, 1),
    [
      { url: 'http://b', value: topOf(30, 2) },
      { url: 'http://c', value: topOf(6, 4, 'bob') },
      { url: 'http://d', error: 'no answer within 2s', last: undefined },
    ],
    10,
  );
  t.like(top, {
    workers: 6,
    unlistedAtMost: 7,
    rules: [{ rule: 'd.k', hitsPerSecond: 6, overLimitPerSecond: 3, shadowMode: true }],
    missing: [{ url: 'http://d', error: 'no answer within 2s' }],
  });
  t.deepEqual(
    top.values.map(({ entries, atLeast, atMost, perSecond, workers }) => [
      entries[0]?.value,
      atLeast,
      atMost,
      perSecond,
      workers,
    ]),
    [
      ['ada', 90, 94, 1.5, 4],
      ['bob', 6, 9, 0.1, 2],
    ],
  );
});

test('a value whose limit is lifted by now says until when', (t) => {
  const top = mergeTop(topOf(60, 1), [{ url: 'http://b', value: topOf(6, 4, 'bob') }], 10);
  const until = Date.parse('2026-11-24T18:00:00Z');
  const { values } = withLifts(top, (domain, [entry]) =>
    domain === 'd' && entry?.value === 'ada' ? until : undefined,
  );
  t.deepEqual(
    values.map(({ entries, liftedUntil }) => [entries[0]?.value, liftedUntil]),
    [
      ['ada', '2026-11-24T18:00:00Z'],
      ['bob', undefined],
    ],
  );
});
