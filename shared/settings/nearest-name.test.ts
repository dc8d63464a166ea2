import test from 'ava';
import { findNearest } from './nearest-name.ts';

test('the nearest candidate within its bound is found, the first among equals', (t) => {
  t.is(
    findNearest('abx', ['abd', 'abc', 'zzz'], () => 2),
    'abd',
  );
  t.is(
    findNearest('abcx', ['abd', 'abc'], () => 2),
    'abc',
  );
  t.is(
    findNearest('ABC', ['abc'], () => 0),
    'abc',
  );
  t.is(
    findNearest('abx', ['abc'], () => 0),
    undefined,
  );
  t.is(
    findNearest('abc', ['abc'], () => -1),
    undefined,
  );
});
