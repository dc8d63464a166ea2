import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { choosePrefixes, splitPaths } from './module-tree.ts';
import { isPrivateName, toClassPathName, toPathName } from './names.ts';
import { canonicalPart } from './nodes.ts';

const readings: Readonly<Record<string, (text: string, more: string) => string>> = {
  path: toPathName,
  class: (text) => toClassPathName(text) ?? 'no path',
  part: (text, more) => canonicalPart(more === '' ? text : `${text} ${more}`) ?? 'no spelling',
  private: (text) => (isPrivateName(text) ? 'private' : 'served'),
  prefixes: (given, env) => choosePrefixes(JSON.parse(given), JSON.parse(env)).join(' '),
  split: (platform, text) => splitPaths(text, platform).join(' '),
};

testLines(test, new URL('names.txt', import.meta.url), (given) => {
  const [what = '', text = '', more = ''] = given.split(/ (?=\S)/, 3);
  return readings[what]?.(text, more) ?? '';
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
