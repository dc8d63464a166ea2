import test from 'ava';
import { acceptVersion } from './accept-version.ts';

const version = (accept: string) => acceptVersion(new Headers({ accept }));

test('the version of the best-weighted entry that has one is taken', (t) => {
  t.is(version('application/json;version=v2'), 'v2');
  t.is(version('a/b;version=v1;q=0.2, c/d;q=0.9;version="v,3", e/f'), 'v,3');
  t.is(version('a/b, c/d;version=v1;q=0'), '');
  t.is(acceptVersion(new Headers()), '');
});
