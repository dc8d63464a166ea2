import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { parseGitAddress, reasonAgainstFolder, reasonAgainstRefName } from './git-address.ts';

// Proof of SECURITY.md: is trusted for commits; cannot start a program or prompt here
testLines(test, new URL('git-address.txt', import.meta.url), (given) => {
  const result = parseGitAddress(given.replaceAll('\\n', '\n'));
  if (!result.ok) return `refused: ${result.reason}`;
  const { url, shown, ...secret } = result.address;
  return `${url} shown as ${shown} ${JSON.stringify(secret)}`;
});

test('valid branch names are those that git allows', (t) => {
  for (const name of ['main', 'release/1.2', 'refs/heads/main', 'a-b_c', 'ünïcode', 'v1.0'])
    t.is(reasonAgainstRefName(name), undefined, name);
  for (const name of [
    ...['', '-x', '--all', 'a..b', 'a b', 'a~1', 'a^', 'a:b', 'a?', 'a*', 'a[', 'a\\b', '@'],
    ...['a@{1}', '/a', 'a/', 'a//b', '.a', 'a/.b', 'a.', 'a.lock', 'a.lock/b', 'a\0', 'a\n'],
  ]) {
    t.truthy(reasonAgainstRefName(name), name);
  }
});

test('a folder stays within the repository', (t) => {
  for (const folder of ['', 'a', 'a/b c', 'ü'])
    t.is(reasonAgainstFolder(folder), undefined, folder);
  for (const folder of ['/', '/a', 'a/', 'a//b', '..', 'a/../b', '.', 'a/.git', 'a\\b', 'a\0b'])
    t.truthy(reasonAgainstFolder(folder), folder);
});
