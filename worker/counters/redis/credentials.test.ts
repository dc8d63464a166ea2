import test from 'ava';
import { createFileCredentials, createStaticCredentials, parseCredentials } from './credentials.ts';

test('user and password are split at the first colon', (t) => {
  t.deepEqual(parseCredentials('pass'), { username: '', password: 'pass' });
  t.deepEqual(parseCredentials('user:pass'), { username: 'user', password: 'pass' });
  t.deepEqual(parseCredentials('user:pa:ss'), { username: 'user', password: 'pa:ss' });
  t.deepEqual(parseCredentials(':pass'), { username: '', password: 'pass' });
});

test('no text is no authentication', async (t) => {
  t.is(await createStaticCredentials('')(), undefined);
});

test('a file that cannot be read is an error that names it', async (t) => {
  const read = createFileCredentials('/nonexistent/auth');
  await t.throwsAsync(read, {
    message: 'the credentials file /nonexistent/auth cannot be read: ENOENT',
  });
});
