// Refusals of scripts as servers and proxies write them. The errors of current servers are also tested on real ones
// (test/feature/store/limiters-redis.test.ts).
import test from 'ava';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createScriptSupport } from './script-support.ts';

const sha = '9be9283860375dc0a789b44c11a2bb1dce6e480f';

const isRefused = (reply: string) =>
  createScriptSupport('s', 'KVSTORE_URL', createRecordedLog()).refused(
    'token_bucket',
    'k',
    reply,
  ) !== undefined;

for (const reply of [
  `ERR unknown command 'EVALSHA', with args beginning with: '${sha}' '1' 'c' `,
  'ERR unknown command `EVALSHA`, with args beginning with: ',
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
  "NOPERM User worker has no permissions to run the 'evalsha' command",
  "ERR command 'EVALSHA' is not allowed",
  'ERR EVALSHA is disabled',
  "unsupported command 'evalsha'",
]) {
  test(`a server without scripts: ${reply}`, (t) => t.true(isRefused(reply)));
}

test('a refusal of scripts is logged once, and its end once', (t) => {
  const log = createRecordedLog();
  const support = createScriptSupport('redis a:1', 'KVSTORE_URL', log);
  support.worked();
  t.is(support.describe(), undefined);
  t.deepEqual(log.lines, []);
  for (let again = 0; again < 3; again++) support.refused('token_bucket', 'k', 'ERR no: disabled');
  t.deepEqual(log.lines.splice(0), [
    'error redis a:1: scripts are refused (EVALSHA): ERR no: disabled; decisions on sliding windows and token buckets fail, all others continue; set algorithm: fixed_window, or name a server with scripts in KVSTORE_URL',
  ]);
  t.is(
    support.describe(),
    'no scripts (EVALSHA): ERR no: disabled; sliding windows and token buckets fail',
  );
  support.worked();
  support.worked();
  t.deepEqual(log.lines, ['notice redis a:1: scripts are executed again']);
  t.is(support.describe(), undefined);
});

for (const reply of [
  "OOM command not allowed when used memory > 'maxmemory'.",
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes',
  "READONLY You can't write against a read only replica.",
  'NOPERM No permissions to access a key',
  'NOPERM this user has no permissions to access one of the keys used as arguments',
  'LOADING Redis is loading the dataset in memory',
  `ERR Error running script (call to f_${sha}): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.`,
]) {
  test(`a server with scripts: ${reply}`, (t) => t.false(isRefused(reply)));
}
