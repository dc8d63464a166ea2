import test from 'ava';
import fc from 'fast-check';
import { isPrivateName, toClassPathName, toPathName } from './names.ts';
import { canonicalPart } from './nodes.ts';

test('names become kebab-case: dashes between cases, before the last capital of a run, never at digits', (t) => {
  const expected = {
    BurstPolicy: 'burst-policy',
    HTTPProbe: 'http-probe',
    UserID: 'user-id',
    Foo2Bar: 'foo2bar',
    OAuth2Client: 'o-auth2client',
    V1: 'v1',
    rate_limits: 'rate-limits',
    ABTest: 'ab-test',
  };
  for (const [name, path] of Object.entries(expected)) t.is(toPathName(name), path);
});

test('the first underscore of a class name begins an extension', (t) => {
  t.deepEqual(toClassPathName('Robots_txt'), { part: 'robots.txt', extension: 'txt' });
  t.deepEqual(toClassPathName('Default_txt'), { part: 'index.txt', extension: 'txt' });
  t.deepEqual(toClassPathName('BurstPolicy'), { part: 'burst-policy', extension: undefined });
  t.is(toClassPathName('Größe'), undefined);
  t.is(toClassPathName('$'), undefined);
});

test('kebab or snake, all lower or all upper case are spellings of a name; others are not', (t) => {
  for (const part of ['burst-policy', 'burst_policy', 'BURST-POLICY', 'BURST_POLICY']) {
    t.is(canonicalPart(part), 'burst-policy');
  }
  for (const part of ['BurstPolicy', 'burstPolicy', 'Burst-policy', 'a b', 'a/b', 'é', '\u212a']) {
    t.is(canonicalPart(part), undefined);
  }
});

test('the path name of every class name is the canonical spelling of itself', (t) => {
  const name = fc.stringMatching(/^[A-Z][A-Za-z0-9]{0,12}$/);
  fc.assert(
    fc.property(name, (text) => {
      const path = toPathName(text);
      return canonicalPart(path) === path && canonicalPart(path.toUpperCase()) === path;
    }),
  );
  t.pass();
});

test('names that begin with an underscore or end in Controller are private', (t) => {
  t.true(isPrivateName('_Hidden'));
  t.true(isPrivateName('BaseController'));
  t.false(isPrivateName('ControllerList'));
});
