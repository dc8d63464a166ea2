import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { HttpError } from '../errors.ts';
import { defaultLimits } from '../limits.ts';
import { parseTarget } from './target.ts';

const parts = (target: string) => parseTarget(target, defaultLimits).parts;

const status = (target: string) => {
  try {
    parts(target);
    return 200;
  } catch (error) {
    return error instanceof HttpError ? error.status : error;
  }
};

testLines(test, new URL('target.txt', import.meta.url), (given) => {
  const target = JSON.parse(given);
  const known = status(target);
  return known === 200 ? JSON.stringify(parts(target)) : String(known);
});

test('a target over the limit, without scheme and host, is answered with 414, and one with too many parts with 400', (t) => {
  const path = `/${'a'.repeat(defaultLimits.targetBytes - 1)}`;
  for (const host of ['', 'http://host']) {
    t.is(status(`${host}${path}`), 200);
    t.is(status(`${host}${path}a`), 414);
  }
  t.is(status('/a'.repeat(defaultLimits.pathParts)), 200);
  t.is(status('/a'.repeat(defaultLimits.pathParts + 1)), 400);
});

test('every path means what a WHATWG URL of it means, so that all mounts agree', (t) => {
  const piece = fc.constantFrom(...'a b . .. %2e .%2E %2e%2e ... \\ %2f'.split(' '), '');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const path = `/${pieces.join('/')}`;
      const url = new URL(`http://host${path}`);
      t.deepEqual(parts(path), parts(url.pathname));
      t.deepEqual(parts(path), parts(url.href));
    }),
  );
});
