import test from 'ava';
import fc from 'fast-check';
import { chooseShare, placeOf } from './share.ts';

/** Few places, so that some are shared. */
const places = fc.array(fc.integer({ min: 0, max: 40 }).map(String), { maxLength: 60 });
const percents = fc.integer({ min: 1, max: 99_999 }).map((each) => each / 1_000);

function countIn(all: readonly string[], chosen: readonly string[]): number {
  return all.filter((place) => chosen.includes(place)).length;
}

test('a share is at least one worker where that is possible, never all, and never more than asked for', (t) => {
  fc.assert(
    fc.property(places, percents, (all, percent) => {
      const chosen = chooseShare(all, percent);
      const count = countIn(all, chosen);
      const asked = Math.max(1, Math.floor((all.length * percent) / 100 + 1e-9));
      const most = Math.min(asked, all.length - 1);
      const smallest = Math.min(
        ...[...new Set(all)].map((place) => countIn(all, [place])),
        Number.POSITIVE_INFINITY,
      );
      const isPossible = smallest <= most;
      return isPossible ? count >= 1 && count <= most : chosen.length === 0;
    }),
  );
  t.pass();
});

test('a share of workers that share no place is as large as asked for', (t) => {
  const all = Array.from({ length: 200 }, (_, index) => placeOf('id', `worker-${index}`, 'x'));
  for (const [percent, count] of [
    [0.1, 1],
    [0.5, 1],
    [1, 2],
    [1.499, 2],
    [1.5, 3],
    [10, 20],
    [29, 58],
    [99.5, 199],
    [99.999, 199],
  ] as const) {
    t.is(chooseShare(all, percent).length, count, `${percent} %`);
  }
  t.is(chooseShare(all.slice(0, 2), 99).length, 1);
  const crowd = Array.from({ length: 10_001 }, (_, index) => String(index));
  t.is(chooseShare(crowd, 99.99).length, 9_999);
});

test('who is in the share stays in it, as far as it goes', (t) => {
  fc.assert(
    fc.property(places, percents, percents, (all, one, other) => {
      const small = chooseShare(all, Math.min(one, other));
      const large = chooseShare(all, Math.max(one, other), new Set(small));
      return small.every((place) => large.includes(place));
    }),
  );
  const all = Array.from({ length: 20 }, (_, index) => `${10 + index}`);
  t.deepEqual(chooseShare(all, 10, new Set(['29', '20', '15'])), ['15', '20']);
  t.deepEqual(chooseShare(all, 20, new Set(['29', '20', '99'])), ['20', '29', '10', '11']);
});

test('a share does not depend on the order of the workers', (t) => {
  fc.assert(
    fc.property(places, percents, (all, percent) => {
      const one = chooseShare(all, percent);
      return String(one) === String(chooseShare(all.toReversed(), percent));
    }),
  );
  t.pass();
});

test('workers that share a place stay together, and are passed over where they are too many', (t) => {
  const all = ['1', '1', '1', '2', '3', '3', '4', '5', '6', '7'];
  t.deepEqual(chooseShare(all, 20), ['2', '4']);
  t.deepEqual(chooseShare(all, 30), ['1']);
  t.deepEqual(chooseShare(all, 30, new Set(['3'])), ['3', '2']);
  t.deepEqual(chooseShare(['1', '1', '1'], 50), []);
  t.deepEqual(chooseShare(['1', '1', '2', '2'], 25), []);
  t.deepEqual(chooseShare(['1'], 99), []);
  t.deepEqual(chooseShare([], 99), []);
});

test('a place is of one rollout, one node id and one instance', (t) => {
  const given = [
    placeOf('rollout', 'worker', 'instance'),
    placeOf('another', 'worker', 'instance'),
    placeOf('rollout', 'other', 'instance'),
    placeOf('rollout', 'worker', 'another'),
    placeOf('rollout', 'worker', undefined),
    placeOf('rollout', 'workerin', 'stance'),
  ];
  t.is(new Set(given).size, given.length);
  for (const place of given) t.regex(place, /^[0-9a-f]{12}$/);
  t.is(placeOf('rollout', 'worker', undefined), placeOf('rollout', 'worker', undefined));
});

test('each rollout begins with other workers', (t) => {
  const firstOf = (rollout: string) => {
    const named = Array.from({ length: 50 }, (_, index) => placeOf(rollout, `w-${index}`, 'x'));
    return named.indexOf(chooseShare(named, 2)[0] ?? '');
  };
  const firsts = Array.from({ length: 30 }, (_, index) => firstOf(`rollout-${index}`));
  t.true(new Set(firsts).size > 10);
});
