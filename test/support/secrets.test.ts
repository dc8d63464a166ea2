import test from 'ava';
import { createSecrets } from './secrets.ts';

const secrets = createSecrets();
const secret = secrets.make('X');
let forms = 0;

for (const [form, text] of [
  ['as it is', `the password ${secret} is wrong`],
  ['as it is', encodeURIComponent(secret)],
  ['as it is', JSON.stringify({ secret })],
  ['cut', secret.slice(0, 12)],
  ['hex', Buffer.from(`me:${secret}`).toString('hex')],
  ...['', 'm', 'me', 'me:'].map(
    (before) => ['base64', Buffer.from(`${before}${secret}`).toString('base64')] as const,
  ),
] as const) {
  forms++;
  test(`a secret is found ${form}, text ${forms}`, (t) => {
    t.true(secrets.findIn(text).includes(`X (${form})`), text);
  });
}

test('a text without a secret has no findings', (t) => {
  t.deepEqual(secrets.findIn('redis://*****@localhost:6379 kept close'), []);
});
