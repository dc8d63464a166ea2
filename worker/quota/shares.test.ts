import test from 'ava';
import fc from 'fast-check';
import { toIntegerShares, toShares } from './shares.ts';

const asked = fc.array(fc.option(fc.nat(1_000), { nil: undefined }), {
  minLength: 1,
  maxLength: 20,
});
const sum = (shares: readonly number[]) => shares.reduce((all, share) => all + share, 0);

test('a caller that asks for less than an equal part gets that plus a tenth, and the others divide the rest', (t) => {
  t.deepEqual(toShares(100, [60, 60, 10]), [44.5, 44.5, 11]);
});

test('the part for which no caller asks is divided equally', (t) => {
  t.deepEqual(toShares(100, [10, 10]), [50, 50]);
  t.deepEqual(toShares(90, [40, 0]), [66.5, 23.5]);
});

test('a caller with unknown demand counts with an equal part', (t) => {
  t.deepEqual(toShares(90, [undefined, 60, 60]), [30, 30, 30]);
});

test('if there is less than one request for each, those that ask for most get one', (t) => {
  t.deepEqual(toShares(2, [1, 9, 5]), [0, 1, 1]);
});

test('shares never exceed the capacity together, and are never negative', (t) => {
  fc.assert(
    fc.property(fc.nat(5_000), asked, (capacity, each) => {
      const shares = toShares(capacity, each);
      const full = toIntegerShares(shares, capacity);
      return (
        sum(shares) <= capacity + 1e-6 &&
        sum(full) <= capacity &&
        [...shares, ...full].every((share) => share >= 0) &&
        full.every(Number.isInteger)
      );
    }),
  );
  t.pass();
});

test('no caller gets less than another one that asks for no more', (t) => {
  fc.assert(
    fc.property(fc.nat(5_000), fc.array(fc.nat(1_000), { minLength: 2 }), (capacity, each) => {
      const shares = toShares(capacity, each);
      return each.every((one, a) =>
        each.every(
          (other, b) => one < other || (shares[a] ?? 0) >= (shares[b] ?? 0) - 1e-6 || one === other,
        ),
      );
    }),
  );
  t.pass();
});
