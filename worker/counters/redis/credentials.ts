// The user name and password for a connection. They are read for each attempt to connect, so that a rotated file takes
// effect, and are never part of an error or a log.
import { AppError, errorText } from '../../../shared/errors.ts';
import { maskFile } from '../../../shared/settings/shown-value.ts';
import { readSecretFile } from '../../../shared/small-file.ts';

export interface Credentials {
  /** Undefined when only the password is sent. */
  readonly username: string | undefined;
  readonly password: string;
}

/** Undefined means no authentication. A rejection is a failed attempt to connect. */
export type ReadCredentials = () => Promise<Credentials | undefined>;

/**
 * Splits `user:pass` at the first colon; without a colon the whole text is the password (behaviour: store-credentials).
 * Undefined for an empty text.
 */
export function parseCredentials(text: string): Credentials | undefined {
  if (text === '') return undefined;
  const colon = text.indexOf(':');
  return colon === -1
    ? { username: undefined, password: text }
    : { username: text.slice(0, colon) || undefined, password: text.slice(colon + 1) };
}

/** Reads the file of KVSTORE_AUTH_FILE each time; white space around the content is ignored. */
export function createFileCredentials(path: string): ReadCredentials {
  return async () => {
    const text = (await readAuthFile(path)).trim();
    if (text === '') throw new AppError('store', `the credentials file ${maskFile(path)} is empty`);
    return parseCredentials(text);
  };
}

/** Far above the size of a name and a cloud's token. */
const maxBytes = 64 * 1024;

async function readAuthFile(path: string): Promise<string> {
  try {
    return await readSecretFile(path, maxBytes);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : errorText(error);
    const shown = maskFile(path);
    throw new AppError('store', `the credentials file ${shown} cannot be read: ${reason}`);
  }
}
