import { createHmac } from 'node:crypto';
import test from 'ava';
import { verifyWebhook } from './webhook.ts';

const secret = "It's a Secret to Everybody";
const body = Buffer.from('Hello, World!');

function call(headers: Readonly<Record<string, string>>, bytes: Uint8Array = body) {
  return { body: bytes, header: (name: string) => headers[name] };
}

test("a signature from the sender's documentation is accepted", (t) => {
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  t.deepEqual(verifyWebhook(call({ 'x-hub-signature-256': signature }), secret), { ok: true });
  t.deepEqual(verifyWebhook(call({ 'x-hub-signature': signature }), secret), { ok: true });
});

test('a signature of another body, with another secret or of another kind is refused', (t) => {
  const sign = (key: string, text: string) =>
    `sha256=${createHmac('sha256', key).update(text).digest('hex')}`;
  const reason = 'the signature does not match the body and the webhook secret';
  for (const signature of [
    sign(secret, 'Hello, World'),
    sign('another', 'Hello, World!'),
    `sha1=${createHmac('sha1', secret).update(body).digest('hex')}`,
    '',
    'sha256=',
    `${sign(secret, 'Hello, World!')}0`,
  ]) {
    const verdict = verifyWebhook(call({ 'x-hub-signature-256': signature }), secret);
    t.deepEqual(verdict, { ok: false, reason }, signature);
  }
});

test('another header does not compensate for a wrong signature', (t) => {
  const headers = { 'x-hub-signature-256': 'sha256=00', 'x-gitlab-token': secret };
  t.false(verifyWebhook(call(headers), secret).ok);
});

test('a token is compared literally', (t) => {
  t.true(verifyWebhook(call({ 'x-gitlab-token': secret }), secret).ok);
  const verdict = verifyWebhook(call({ 'x-gitlab-token': `${secret} ` }), secret);
  t.deepEqual(verdict, { ok: false, reason: 'the token is not the webhook secret' });
});

test('without a proof, or without a secret, every call is refused', (t) => {
  const verdict = verifyWebhook(call({}), secret);
  t.regex(verdict.ok ? '' : verdict.reason, /neither X-Hub-Signature-256 nor X-Gitlab-Token/);
  const signature = `sha256=${createHmac('sha256', '').update(body).digest('hex')}`;
  t.false(verifyWebhook(call({ 'x-hub-signature-256': signature }), '').ok);
  t.false(verifyWebhook(call({ 'x-gitlab-token': '' }), '').ok);
});
