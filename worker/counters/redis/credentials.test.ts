import test from 'ava';
import { createFileCredentials, parseCredentials } from './credentials.ts';

test('user and password are split at the first colon', (t) => {
  t.deepEqual(parseCredentials('pass'), { username: undefined, password: 'pass' });
  t.deepEqual(parseCredentials('user:pass'), { username: 'user', password: 'pass' });
  t.deepEqual(parseCredentials('user:pa:ss'), { username: 'user', password: 'pa:ss' });
  t.deepEqual(parseCredentials(':pass'), { username: undefined, password: 'pass' });
});

test('no text is no authentication', (t) => {
  t.is(parseCredentials(''), undefined);
});

test('a file that cannot be read is an error that names it', async (t) => {
  const read = createFileCredentials('/nonexistent/auth');
  await t.throwsAsync(read, {
    message: 'the credentials file /nonexistent/auth cannot be read: ENOENT',
  });
});
