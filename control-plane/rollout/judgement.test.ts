import test from 'ava';
import { noFigures, type Traffic } from '../fleet/tally.ts';
import { type CountedWorker, type Judgement, judge, judgeAll } from './judgement.ts';

const quiet = { decisions: 1_000, overLimit: 0, errors: 0, noMatch: 0 };
const others = [named('quiet', quiet)];

function named(name: string, given: Partial<CountedWorker> = {}): CountedWorker {
  return { ...noFigures, before: undefined, ...quiet, name, ...given };
}

function kindOf(having: Partial<Traffic>, without: Partial<Traffic> = {}, points = 10) {
  return judge([named('one', having)], [named('other', without)], points).kind;
}

const errors = (count: number) => ({ decisions: 1_000 - count, errors: count });
const over = (count: number) => ({ overLimit: count });

test('errors may be one point above those of the others', (t) => {
  t.is(kindOf(errors(10)), 'good');
  t.is(kindOf(errors(11)), 'bad');
  t.is(kindOf({ decisions: 9_899, errors: 101 }), 'bad', '1.01 %');
  t.is(kindOf(errors(110), errors(100)), 'good');
  t.is(kindOf(errors(111), errors(100)), 'bad');
  t.is(kindOf(errors(0), errors(1_000)), 'good', 'fewer errors are no reason');
});

for (const [name, count] of [
  ['the share over limit', 'overLimit'],
  ['the share without a rule', 'noMatch'],
] as const) {
  const some = (hits: number) => ({ [count]: hits });

  test(`${name} may be ten points above, whatever the others have`, (t) => {
    t.is(kindOf(some(101), some(0)), 'bad');
    t.is(kindOf(some(450), some(350)), 'good');
    t.is(kindOf(some(451), some(350)), 'bad');
    t.is(kindOf(some(1_000), some(880)), 'bad', 'what a flood has made of the others is no excuse');
    t.is(kindOf(some(51), some(0), 5), 'bad');
    t.is(kindOf(some(0), some(1_000)), 'good', 'fewer are no reason');
  });

  test(`${name} may not be half as high again, where that is three points and not chance`, (t) => {
    t.is(kindOf(some(29), some(0)), 'good', 'under three points');
    t.is(kindOf(some(31), some(0)), 'bad');
    t.is(kindOf(some(149), some(100)), 'good', 'not half as high again');
    t.is(kindOf(some(151), some(100)), 'bad');
    const few = { decisions: 100 };
    t.is(kindOf({ ...few, ...some(15) }, some(100)), 'good', 'such a difference comes by chance');
    t.is(kindOf({ ...few, ...some(19) }, some(100)), 'bad');
  });
}

test('the bound of chance is passed by one in a hundred samples of equal sides', (t) => {
  // The normal approximation of both sides, drawn evenly: z of the k-th of 1,000 samples.
  const share = 0.2;
  const deviation = Math.sqrt(share * (1 - share) * (2 / 100));
  const above = [2.2, 2.45].map((z) => {
    const half = (z * deviation * 100) / 2;
    return kindOf(
      { decisions: 100, overLimit: 20 + half },
      { decisions: 100, overLimit: 20 - half },
      100,
    );
  });
  t.deepEqual(above, ['good', 'bad']);
});

test('requests with several descriptors without a rule are compared as well', (t) => {
  t.is(kindOf({ noMatch: 2_000 }, { noMatch: 2_000 }), 'good');
  t.is(kindOf({ noMatch: 2_200 }, { noMatch: 2_000 }), 'bad');
});

test('a fleet that has fewer than a hundred requests on each worker says nothing', (t) => {
  const few = { decisions: 90, overLimit: 90, errors: 9 };
  t.deepEqual(judge([named('one', few)], [named('other', { decisions: 99 })], 10), {
    kind: 'silent',
    text: '90 decisions with it, 99 without: fewer than 100',
  });
  t.is(kindOf({}, few), 'silent');
  const many = ['a', 'b', 'c', 'd'].map((name) => named(name, { decisions: 99 }));
  t.is(judge([named('one', few)], many, 10).kind, 'silent', '396 on four others');
  const enough = { decisions: 90, overLimit: 0, errors: 10 };
  t.is(kindOf(enough), 'bad');
  t.is(kindOf({}, enough), 'good');
});

test('silence of those with it alone is not health', (t) => {
  const busy = Array.from({ length: 19 }, (_, at) => named(`w${at}`, { decisions: 761 }));
  t.deepEqual(judge([named('one', { decisions: 3 })], busy, 10), {
    kind: 'unclear',
    text: '3 requests with it, where the others had 761: they stand still, or nobody asks them',
  });
});

test('where every request fails there are no decisions, and that is bad', (t) => {
  t.deepEqual(judge([named('one', { decisions: 0, errors: 100 })], others, 10), {
    kind: 'bad',
    text: 'errors 100.0 % where it is, 0.0 % elsewhere (0 decisions with it, 1000 without)',
  });
});

test('figures are told in percent of all requests, failed ones too', (t) => {
  t.deepEqual(
    judge(
      [named('one', { decisions: 900, overLimit: 300, errors: 100 })],
      [named('other', { ...errors(100), overLimit: 50 })],
      10,
    ),
    {
      kind: 'bad',
      text: 'over limit 30.0 % where it is, 5.0 % elsewhere (900 decisions with it, 900 without)',
    },
  );
});

test('without workers to compare with there is no judgement', (t) => {
  t.is(judge([], others, 10).kind, 'silent');
  t.is(judge([], [], 10).kind, 'silent');
});

const fine = ['a', 'b'].map((name) => named(name));

test('one of two workers is enough for a judgement', (t) => {
  t.is(judge([named('liar', over(1_000)), named('a')], others, 10).kind, 'bad');
});

test('one of two does not hide what the other one has', (t) => {
  const busy = named('busy', { decisions: 100_000 });
  t.like(judge([busy, named('a', over(500))], others, 10), {
    kind: 'unclear',
    text: 'worker busy alone makes the difference: no difference; without it over limit 50.0 % where it is, 0.0 % elsewhere (1000 decisions with it, 1000 without)',
  });
});

for (const weight of [10_000, 1_000, 500]) {
  test(`of three with it one alone decides nothing, with ${weight} decisions beside 1000 of each`, (t) => {
    const liar = named('liar', { decisions: weight, overLimit: weight });
    for (const having of [
      [liar, ...fine],
      [...fine, liar],
    ]) {
      const judgement = judge(having, others, 10);
      t.is(judgement.kind, 'unclear');
      t.regex(
        'text' in judgement ? judgement.text : '',
        /^worker liar alone makes the difference: over limit .*; without it no difference$/,
      );
    }
  });
}

test('one of several without it is no excuse, and no reason', (t) => {
  const liar = named('liar', { decisions: 1_000_000, overLimit: 1_000_000 });
  const many = Array.from({ length: 18 }, (_, at) => named(`w${at}`));
  t.is(judge([named('one', over(250))], [...many, liar], 10).kind, 'bad');
  t.is(
    judge([named('one')], [...many, named('liar', { decisions: 0, errors: 1_000_000 })], 10).kind,
    'good',
  );
});

test('errors of one worker of three decide nothing', (t) => {
  t.is(judge([named('liar', { decisions: 0, errors: 500 }), ...fine], others, 10).kind, 'unclear');
});

test('a revision that is bad on all workers together is bad', (t) => {
  const having = ['a', 'b', 'c'].map((name) => named(name, over(500)));
  t.is(judge(having, [named('d'), named('e'), named('f')], 10).kind, 'bad');
});

test('without the only one that has traffic there is nothing to judge by', (t) => {
  const silent = ['b', 'c'].map((name) => named(name, { decisions: 10, overLimit: 0 }));
  t.is(judge([named('a'), ...silent], others, 10).kind, 'good');
  const judgement = judge([named('a', over(500)), ...silent], others, 10);
  t.is(judgement.kind, 'unclear');
  t.regex(
    'text' in judgement ? judgement.text : '',
    /without it 20 decisions with it, 1000 without: fewer than 100$/,
  );
});

test('too little traffic is that, whoever weighs most', (t) => {
  const silent = ['a', 'b', 'c'].map((name) => named(name, { decisions: 33 }));
  t.is(judge(silent, silent, 10).kind, 'silent');
});

const groupOf = (
  name: string | undefined,
  having: Partial<Traffic>[],
  without: Partial<Traffic>[],
) => ({
  name,
  having: having.map((given, index) => named(`having-${index}`, given)),
  others: without.map((given, index) => named(`other-${index}`, given)),
});

const textOf = (judgement: Judgement) => ('text' in judgement ? judgement.text : '');

test('each node group is judged by itself, and the worst one counts', (t) => {
  const good = groupOf(undefined, [{}], [{}]);
  const bad = groupOf('edge', [over(500)], [{}]);
  const silent = groupOf('quiet', [{ decisions: 1 }], [{ decisions: 1 }]);
  const unclear = groupOf('odd', [over(1_000), {}, {}], [{}]);
  t.is(judgeAll([good], 10).kind, 'good');
  t.is(judgeAll([good, silent], 10).kind, 'silent');
  t.is(judgeAll([silent, unclear, good], 10).kind, 'unclear');
  t.is(judgeAll([silent, unclear, bad, good], 10).kind, 'bad');
  t.regex(textOf(judgeAll([good, bad], 10)), /^node group 'edge': over limit 50\.0 %/);
  t.regex(textOf(judgeAll([groupOf(undefined, [over(500)], [{}])], 10)), /^over limit/);
});

const had = (given: Partial<Traffic>) => ({ before: { ...noFigures, ...quiet, ...given } });

test('a worker that had more of it before the revision is not blamed for that', (t) => {
  const own = named('one', { ...over(350), ...had(over(350)) });
  const elsewhere = named('other', { ...over(50), ...had(over(50)) });
  t.deepEqual(judge([own], [elsewhere], 10), {
    kind: 'good',
    text: 'within the bounds: errors 0.0 % beside 0.0 %; over limit 35.0 % (35.0 % before) beside 5.0 % (5.0 % before); without a rule 0.0 % beside 0.0 % (1000 decisions with it, 1000 without)',
  });
  const flood = named('other', { ...over(350), ...had(over(50)) });
  const flooded = named('one', { ...over(650), ...had(over(350)) });
  t.is(judge([flooded], [flood], 10).kind, 'good', 'the same flood');
  t.is(judge([flooded], [elsewhere], 10).kind, 'bad');
});

test('a worker that had less of it before is held to that', (t) => {
  const usual = named('other', { ...over(300), ...had(over(300)) });
  t.deepEqual(judge([named('one', { ...over(250), ...had(over(20)) })], [usual], 10), {
    kind: 'bad',
    text: 'over limit 25.0 % where it is (2.0 % before), 30.0 % elsewhere (30.0 % before) (1000 decisions with it, 1000 without)',
  });
  const past = named('other', { ...over(50), ...had(over(500)) });
  t.is(judge([named('one', { ...over(50), ...had(over(50)) })], [past], 10).kind, 'good');
  t.is(judge([named('one', { ...over(300), ...had(over(500)) })], [past], 10).kind, 'bad');
});

test('errors, and descriptors without a rule, are compared with those of before as well', (t) => {
  const other = named('other', had({}));
  const failing = (now: number, before: number) =>
    judge([named('one', { ...errors(now), ...had(errors(before)) })], [other], 10).kind;
  t.is(failing(50, 50), 'good');
  t.is(failing(61, 50), 'bad');
  const lost = (now: number, before: number) =>
    judge([named('one', { noMatch: now, ...had({ noMatch: before }) })], [other], 10).kind;
  t.is(lost(400, 400), 'good');
  t.is(lost(501, 400), 'bad');
});

test('each worker is compared with its own share, whichever of them has more requests now', (t) => {
  const busy = named('a', { decisions: 9_000, overLimit: 4_500, ...had(over(500)) });
  const calm = named('b', { decisions: 1_000, ...had({ decisions: 9_000, errors: 0 }) });
  const other = named('other', had({}));
  t.is(judge([busy, calm], [other], 10).kind, 'good');
});

test('figures of fewer than a hundred requests before are none', (t) => {
  const few = had({ decisions: 99, overLimit: 99 });
  t.is(judge([named('one', { ...over(350), ...few })], [named('other')], 10).kind, 'bad');
  const idle = named('idle', { decisions: 1 });
  const known = named('one', { ...over(350), ...had(over(350)) });
  t.is(judge([known, idle], [named('other', had({}))], 10).kind, 'good', 'of one that has nothing');
});

test('a node group of which all have it is compared with the same workers before', (t) => {
  const both = (now: Partial<Traffic>) => [
    { name: 'edge', having: [named('a', { ...now, ...had(over(50)) })], others: [] },
    groupOf(undefined, [], [over(900)]),
  ];
  t.deepEqual(judgeAll(both(over(50)), 10), {
    kind: 'good',
    text: "node group 'edge': within the bounds: errors 0.0 % (0.0 % before); over limit 5.0 % (5.0 % before); without a rule 0.0 % (0.0 % before) (1000 decisions with it, which all have, 1000 before it)",
  });
  t.deepEqual(judgeAll(both(over(300)), 10), {
    kind: 'bad',
    text: "node group 'edge': over limit 30.0 % where it is (5.0 % before) (1000 decisions with it, which all have, 1000 before it)",
  });
  t.deepEqual(judgeAll([groupOf('edge', [{}], []), groupOf(undefined, [], [{}])], 10), {
    kind: 'unclear',
    text: "node group 'edge': 1000 decisions with it, which all have: there are no figures of these workers from before to compare with",
  });
});

test('a node group of which all have it stands still where other groups have requests', (t) => {
  const [edge, other] = [groupOf('edge', [{ decisions: 3 }], []), groupOf(undefined, [], [{}])];
  t.is(judgeAll([edge, other], 10).kind, 'unclear');
  t.is(judgeAll([edge, other], 10, false).kind, 'silent');
  t.is(judgeAll([edge, groupOf(undefined, [], [{ decisions: 3 }])], 10).kind, 'silent');
  t.is(judgeAll([], 10).kind, 'silent');
});

test('where the others have no requests the same workers before are enough', (t) => {
  const own = named('one', { ...over(300), ...had(over(50)) });
  t.like(judge([own], [named('other', { decisions: 9 })], 10), {
    kind: 'bad',
    text: 'over limit 30.0 % where it is (5.0 % before) (1000 decisions with it, 9 without, 1000 before it)',
  });
});

/** With hits of two domains. */
function inDomains(name: string, shop: number, mail: number, of = 1_000) {
  const domains = new Map([
    ['shop', { hits: of, overLimit: shop }],
    ['mail', { hits: of, overLimit: mail }],
  ]);
  return named(name, { decisions: 100_000, domains });
}

test('the share over limit is compared for each domain as well', (t) => {
  const other = inDomains('other', 100, 0);
  t.deepEqual(judge([inDomains('one', 100, 150)], [other], 10), {
    kind: 'bad',
    text: "domain 'mail': over limit 15.0 % where it is, 0.0 % elsewhere (1000 decisions with it, 1000 without)",
  });
  t.is(judge([inDomains('one', 100, 20)], [other], 10).kind, 'good');
  t.is(judge([inDomains('one', 99, 99, 99)], [other], 10).kind, 'good', 'too few hits');
  const before = inDomains('one', 100, 150).domains;
  const always = {
    ...inDomains('one', 100, 150),
    before: { ...noFigures, ...quiet, domains: before },
  };
  t.is(
    judge([always], [{ ...other, before: { ...noFigures, ...quiet, domains: other.domains } }], 10)
      .kind,
    'good',
  );
  const three = [inDomains('liar', 0, 1_000), inDomains('a', 0, 0), inDomains('b', 0, 0)];
  t.regex(
    textOf(judge(three, [other], 10)),
    /^domain 'mail': worker liar alone makes the difference/,
  );
  t.is(judge(three, [other], 10).kind, 'unclear');
});

test('what is bad while a worker cannot reach its store is not blamed on the revision', (t) => {
  const away = { storeAway: 'redis' };
  const bad = named('one', errors(300));
  const [other, third] = [named('other', away), named('third', away)];
  t.deepEqual(judgeAll([{ name: undefined, having: [bad], others: [other, third] }], 10), {
    kind: 'store',
    text: 'errors 30.0 % where it is, 0.0 % elsewhere (700 decisions with it, 2000 without), while worker other and 1 more cannot reach the store (redis)',
  });
  const lost = named('one', { noMatch: 900 });
  const kinds = [lost, named('one'), named('one', { ...away, decisions: 3 })].map(
    (each) => judgeAll([{ name: undefined, having: [each], others: [other] }], 10, false).kind,
  );
  t.deepEqual(kinds, ['bad', 'good', 'unclear'], 'a domain that is misspelt is of the revision');
});
