import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createFileCredentials, parseCredentials } from './credentials.ts';

test('user and password are split at the first colon', (t) => {
  t.deepEqual(parseCredentials('pass'), { username: undefined, password: 'pass' });
  t.deepEqual(parseCredentials('user:pass'), { username: 'user', password: 'pass' });
  t.deepEqual(parseCredentials('user:pa:ss'), { username: 'user', password: 'pa:ss' });
  t.deepEqual(parseCredentials(':pass'), { username: undefined, password: 'pass' });
});

test('an empty text means no authentication', (t) => {
  t.is(parseCredentials(''), undefined);
});

test('a file that cannot be read is an error that names it', async (t) => {
  const read = createFileCredentials('/nonexistent/auth');
  await t.throwsAsync(read, {
    message: 'the credentials file /nonexistent/auth cannot be read: ENOENT',
  });
});

test('a file is read each time, without the white space around it, and must not be empty', async (t) => {
  const path = join(createTemporaryFolder(t), 'auth');
  const read = createFileCredentials(path);
  writeFileSync(path, 'user:one\n');
  t.deepEqual(await read(), { username: 'user', password: 'one' });
  writeFileSync(path, ' \n');
  await t.throwsAsync(read, { message: `the credentials file ${path} is empty` });
});

test('an endless file is refused at its bound', async (t) => {
  await t.throwsAsync(createFileCredentials('/dev/zero'), {
    message: 'the credentials file /dev/zero cannot be read: /dev/zero has more than 65536 bytes',
  });
});
