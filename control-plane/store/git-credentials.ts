// The password or token for a Git repository.
import { AppError } from '../../shared/errors.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { readSmallFile } from '../../shared/small-file.ts';
import { trimEnd } from '../../shared/trim-end.ts';
import type { GitCredentials } from './git-address.ts';

export interface GitCredentialSettings {
  /** '' for hosts that take any user name with a token. */
  readonly username: string;
  /** '' when there is none. */
  readonly password: string;
  /** Takes precedence over `password`, and is read again for each use; '' when there is none. */
  readonly passwordFile: string;
}

const anyUsername = 'git';
const maxLength = 64 * 1024;

/** The function rejects with an AppError `store` that names the file, without its content. */
export function createCredentialReader(
  settings: GitCredentialSettings,
): () => Promise<GitCredentials | undefined> {
  const username = settings.username === '' ? anyUsername : settings.username;
  return async () => {
    const { passwordFile } = settings;
    const text = passwordFile === '' ? settings.password : await readPassword(passwordFile);
    const password = trimEnd(text, '\r\n');
    if (password === '') return undefined;
    if (/[\0\r\n]/.test(username + password) || password.length > maxLength) {
      const place = passwordFile === '' ? 'the Git password' : passwordFile;
      throw new AppError(
        'store',
        `${place} is not a password: it has several lines, or is too long`,
      );
    }
    return { username, password };
  };
}

async function readPassword(path: string): Promise<string> {
  try {
    return await readSmallFile(path, maxLength);
  } catch (error) {
    throw new AppError('store', `the Git password cannot be read from ${path} (${codeOf(error)})`);
  }
}
