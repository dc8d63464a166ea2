import test from 'ava';
import { parseGitAddress, reasonAgainstFolder, reasonAgainstRefName } from './git-address.ts';

const reasonAgainst = (url: string) => {
  const result = parseGitAddress(url);
  return result.ok ? undefined : result.reason;
};

test('every form of address that git takes is taken', (t) => {
  for (const url of [
    'https://git.example/limits.git',
    'http://127.0.0.1:8080/limits',
    'ssh://git@git.example:2222/limits.git',
    'git@git.example:team/limits.git',
    'git.example:limits',
    'git://git.example/limits',
    'file:///srv/limits.git',
    '/srv/limits.git',
    './limits.git',
    'limits',
  ]) {
    const result = parseGitAddress(url);
    t.true(result.ok && result.address.url === url, url);
  }
});

// Proof of SECURITY.md: is trusted for commits; cannot start a program or prompt here
test('an address that would act as an option or start a program is refused', (t) => {
  for (const url of [
    '',
    '-x',
    '--upload-pack=touch /tmp/x',
    '--upload-pack=x',
    'ext::sh',
    'fd::17',
    'foo::https://git.example/x',
    'ssh://-oProxyCommand=x/y',
    '-oProxyCommand=x:y',
    'git@-oProxyCommand=x:y',
    'ftp://git.example/x',
    'javascript://x',
    'https://',
    'https://git.example/a b',
    'https://git.example/a\nb',
  ]) {
    t.truthy(reasonAgainst(url), url);
  }
});

test('a name and a password are taken out of the URL', (t) => {
  const of = (url: string) => {
    const result = parseGitAddress(url);
    return result.ok ? result.address : undefined;
  };
  t.deepEqual(of('https://ann:p%40ss@git.example:8443/x.git'), {
    url: 'https://git.example:8443/x.git',
    shown: 'https://git.example:8443/x.git',
    credentials: { username: 'ann', password: 'p@ss' },
    credentialScope: 'https://git.example:8443',
    secrets: [],
  });
  t.deepEqual(of('https://token@git.example/x')?.credentials, {
    username: 'git',
    password: 'token',
  });
  t.is(of('https://git.example/x')?.credentials, undefined);
  t.is(
    reasonAgainst('ssh://git:secret@git.example/x'),
    'ssh takes no password from a URL; use a key',
  );
  t.is(
    reasonAgainst('https://ann:a%0Ab@git.example/x'),
    'its user name or password is not percent-encoded',
  );
});

test('a token among the parameters is kept for git, and hidden from people', (t) => {
  const result = parseGitAddress('https://git.example/x?ref=main&private_token=t%2Fk3nt%2Fk3n');
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.address.url, 'https://git.example/x?ref=main&private_token=t%2Fk3nt%2Fk3n');
  t.is(result.address.shown, 'https://git.example/x?*****');
  t.deepEqual(result.address.secrets, ['t%2Fk3nt%2Fk3n', 't/k3nt/k3n']);
});

test('names of branches are those that git allows', (t) => {
  for (const name of ['main', 'release/1.2', 'refs/heads/main', 'a-b_c', 'ünïcode', 'v1.0']) {
    t.is(reasonAgainstRefName(name), undefined, name);
  }
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
  for (const folder of ['/', '/a', 'a/', 'a//b', '..', 'a/../b', '.', 'a/.git', 'a\\b', 'a\0b']) {
    t.truthy(reasonAgainstFolder(folder), folder);
  }
});
