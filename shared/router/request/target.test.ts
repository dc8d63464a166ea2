import test from 'ava';
import fc from 'fast-check';
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

test('parts are decoded once, after splitting', (t) => {
  t.deepEqual(parts('/a%2Fb/%252F/c%20d'), ['a/b', '%2F', 'c d']);
});

test('empty parts, and slashes at the front, name nothing', (t) => {
  t.deepEqual(parts('//ops///drain/'), ['ops', 'drain']);
  t.deepEqual(parts(''), []);
});

test('an absolute target loses scheme and host', (t) => {
  t.deepEqual(parts('http://ops:80/a?b'), ['a']);
  t.deepEqual(parts('http://ops'), []);
});

test('a target that is not a path, or holds what must be encoded, is 400', (t) => {
  for (const target of ['a/b', '/a b', '/é', '/a#b', '/a?b#c', '/%', '/%c3', '/%00', '/\u007f']) {
    t.is(status(target), 400, target);
  }
});

test('a target over the limit is 414 and one with too many parts 400', (t) => {
  t.is(status(`/${'a'.repeat(defaultLimits.targetBytes - 1)}`), 200);
  t.is(status(`/${'a'.repeat(defaultLimits.targetBytes)}`), 414);
  t.is(status('/a'.repeat(defaultLimits.pathParts)), 200);
  t.is(status('/a'.repeat(defaultLimits.pathParts + 1)), 400);
});

test('the limit of a target counts neither scheme nor host', (t) => {
  const path = `/${'a'.repeat(defaultLimits.targetBytes - 1)}`;
  t.is(status(`http://host${path}`), 200);
  t.is(status(`http://host${path}a`), 414);
});

test('every path means what a WHATWG URL of it means, so that all mounts agree', (t) => {
  const piece = fc.constantFrom(
    'a',
    'b',
    '.',
    '..',
    '%2e',
    '.%2E',
    '%2e%2e',
    '',
    '...',
    '\\',
    '%2f',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const path = `/${pieces.join('/')}`;
      const url = new URL(`http://host${path}`);
      t.deepEqual(parts(path), parts(url.pathname));
      t.deepEqual(parts(path), parts(url.href));
    }),
  );
});
