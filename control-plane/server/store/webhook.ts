// Signs calls, and verifies the signature of a webhook. The admin API receives the call and triggers the store.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export interface WebhookSettings {
  readonly secret: string;
  /** Takes precedence over `secret`, and is read at each call; undefined when the secret is not in a file. */
  readonly secretFile: string | undefined;
}

export interface WebhookCall {
  /** The body's bytes as received. */
  readonly body: Uint8Array;
  /** The value of a header by its lower-case name; undefined when it is absent or repeated. */
  header(name: string): string | undefined;
}

export type WebhookVerdict =
  | { readonly ok: true }
  /** The reason for the caller and the log. */
  | { readonly ok: false; readonly reason: string };

/** Accepts a call with a proof of the secret: `X-Hub-Signature-256` (GitHub, Gitea, Forgejo) or `X-Hub-Signature`
 * (Bitbucket) with `sha256=` and the HMAC of the body in hex; or `X-Gitlab-Token` with the secret itself. Takes the
 * same time whatever is wrong with a proof. If several of the headers are present, the first one decides. An empty
 * secret refuses everything. */
export function verifyWebhook(call: WebhookCall, secret: string): WebhookVerdict {
  if (secret === '') return { ok: false, reason: 'no webhook secret is set' };
  const signature = call.header('x-hub-signature-256') ?? call.header('x-hub-signature');
  if (signature !== undefined) {
    return isEqual(signature.toLowerCase(), signBody(call.body, secret))
      ? { ok: true }
      : { ok: false, reason: 'the signature does not match the body and the webhook secret' };
  }
  const token = call.header('x-gitlab-token');
  if (token !== undefined) {
    return isEqual(token, secret)
      ? { ok: true }
      : { ok: false, reason: 'the token is not the webhook secret' };
  }
  const reason =
    'neither X-Hub-Signature-256 nor X-Gitlab-Token is there: set the secret at the sender';
  return { ok: false, reason };
}

/** `sha256=` and the HMAC of the body in hex, as in `X-Hub-Signature-256`. A text is encoded as UTF-8. */
export function signBody(body: Uint8Array | string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Hashing makes the lengths equal, so that timing does not even reveal the length. */
function isEqual(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
