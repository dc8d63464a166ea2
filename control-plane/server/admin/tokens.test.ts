import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { openTokenFile, parsePeerToken, parseTokens } from './tokens.ts';

const listFile = { setting: '--admin-tokens-file', parse: parseTokens };
const [ann, bob] = ['token-of-ann-0123456789', 'token-of-bob-0123456789'];

test('a token is found with its name and scope, and nothing else is', (t) => {
  const result = parseTokens(`# users\n\nann read ${ann}\r\n  bob\twrite  ${bob}  \n`, 'tokens');
  t.true(result.ok);
  if (!result.ok) return;
  t.is(result.count, 2);
  t.deepEqual(result.tokens.find(ann), { name: 'ann', scope: 'read' });
  t.deepEqual(result.tokens.find(bob), { name: 'bob', scope: 'write' });
  for (const other of ['', `${ann} `, ann.slice(0, -1), 'ann', ann.toUpperCase()]) {
    t.is(result.tokens.find(other), undefined);
  }
});

test('every mistake is reported with its line, and without tokens', (t) => {
  const text = [
    `ann read ${ann}`,
    `ann write ${bob}`,
    'eve admin token-of-eve-0123456789',
    'mallory read short',
    'a/b read token-of-a/b-0123456789',
    `zoe read ${bob}`,
    `two words read ${bob}`,
  ].join('\n');
  const result = parseTokens(text, 'tokens');
  t.deepEqual(result.ok ? [] : result.problems, [
    'tokens:2: there are two tokens of the name ann',
    'tokens:3: the scope is not one of read, write, xds',
    'tokens:4: a token has at least 16 characters',
    'tokens:5: a name has 1 to 64 letters, digits and . _ @ -',
    'tokens:6: it is the token of ann as well',
    'tokens:7: write a name, a scope and a token, with spaces between',
  ]);
  const empty = parseTokens('# nobody\n', 'tokens');
  t.deepEqual(empty.ok ? [] : empty.problems, ['tokens: there is no token in it']);
});

test('a changed file is applied, and a broken one leaves the tokens in force', async (t) => {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'tokens');
  writeFileSync(path, `ann read ${ann}\n`);
  const log = createRecordedLog();
  const clock = createManualClock();
  const tokens = await openTokenFile({ ...listFile, path, log, clock, intervalMs: 1_000 });
  t.teardown(() => tokens.close());
  const poll = async (what: string, condition: () => boolean) => {
    await eventually('a poll is due', () => clock.pending === 1);
    clock.advance(1_000);
    await eventually(what, condition);
  };

  writeFileSync(path, `bob write ${bob}\n`);
  await poll('bob is known', () => tokens.find(bob) !== undefined);
  t.is(tokens.find(ann), undefined, 'a token that was removed is refused');
  writeFileSync(path, 'bob write\n');
  await poll('the mistake is reported', () => log.lines.length === 2);
  t.is(tokens.find(bob)?.scope, 'write');
  await poll('the next poll is over', () => clock.pending === 1);
  t.deepEqual(log.lines, [
    `info ${path} has changed: 1 tokens are in force`,
    `error The earlier tokens stay in force: ${path}:1: write a name, a scope and a token, with spaces between`,
  ]);
});

test('a file that is missing or invalid at the start is reported', async (t) => {
  const deps = { log: createRecordedLog(), clock: createManualClock() };
  await t.throwsAsync(openTokenFile({ ...listFile, ...deps, path: '/nonexistent/tokens' }), {
    code: 'cannot_start',
    message: /^--admin-tokens-file: the tokens file cannot be read: .*\/nonexistent\/tokens/,
  });
  await t.throwsAsync(openTokenFile({ ...listFile, ...deps, path: '/dev/zero' }), {
    message: /cannot be read: \/dev\/zero has more than 1048576 bytes$/,
  });
});

test('the token of the peers has read access, under their name', (t) => {
  const result = parsePeerToken(`\n${ann}\n`, 'token');
  t.true(result.ok);
  if (!result.ok) return;
  t.deepEqual(result.tokens.find(ann), { name: 'peer', scope: 'read' });
  t.is(result.tokens.find(bob), undefined);
  for (const [text, problem] of [
    ['', 'token does not hold a token alone'],
    [`ann read ${ann}`, 'token does not hold a token alone'],
    [`${ann}\n${bob}`, 'token does not hold a token alone'],
    ['short', 'token:1: a token has at least 16 characters'],
  ] as const) {
    const wrong = parsePeerToken(text, 'token');
    t.deepEqual(wrong.ok ? [] : wrong.problems, [problem]);
  }
});
