// The token that a command sends. No message quotes it: it may be a misplaced secret.
import { errorText } from '../../shared/errors.ts';
import { maskFile } from '../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../shared/small-file.ts';

export type TokenResult =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly message: string };

/** No header may be longer. */
const maxTokenBytes = 16 * 1024;

export async function readTokenFile(path: string): Promise<TokenResult> {
  try {
    return checkToken((await readSecretFile(path, maxTokenBytes)).trim(), maskFile(path));
  } catch (error) {
    return { ok: false, message: `the token cannot be read: ${errorText(error)}` };
  }
}

/** `from` names the origin in the message about an invalid token. */
export function checkToken(value: string, from: string): TokenResult {
  if (/^[\x21-\x7e]+$/.test(value)) return { ok: true, value };
  return { ok: false, message: `${from} does not hold a token alone` };
}
