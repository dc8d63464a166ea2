// The token that a worker sends to its management servers, from a file. It is read for each connection, so that a
// replaced token is used, and is never part of an error or a log.
import { errorText } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import { maskFile } from '../shared/settings/shown-value.ts';
import { readSecretFile } from '../shared/small-file.ts';

export type TokenReading =
  | { readonly ok: true; readonly token: string }
  /** `problem` is human-readable and completes a sentence that begins with `the file `. */
  | { readonly ok: false; readonly problem: string };

/** Tokens are never longer: a larger file is a wrong path. */
const maxFileBytes = 16 * 1024;

/** White space around the token is ignored. */
export async function readTokenFile(path: string): Promise<TokenReading> {
  try {
    const token = (await readSecretFile(path, maxFileBytes)).trim();
    if (token === '') return bad('is empty');
    return /^[!-~]+$/.test(token)
      ? { ok: true, token }
      : bad('does not hold one token in ASCII without white space');
  } catch (error) {
    return bad(`cannot be read (${errorText(error)})`);
  }
}

/**
 * Reads the current token. While the file has no valid token, resolves with the last valid one, and logs each problem
 * once. Rejects if there has never been a valid one.
 */
export type ReadToken = () => Promise<string>;

export function createReadToken(path: string, log: Log): ReadToken {
  let last: string | undefined;
  let lastProblem: string | undefined;
  return async () => {
    const reading = await readTokenFile(path);
    if (reading.ok) {
      last = reading.token;
      lastProblem = undefined;
      return last;
    }
    const problem = `the file ${maskFile(path)} of the token for management servers ${reading.problem}`;
    if (last === undefined) throw new Error(problem);
    if (problem !== lastProblem) log.warning(`${problem}; the last good token stays in use`);
    lastProblem = problem;
    return last;
  };
}

function bad(problem: string): TokenReading & { readonly ok: false } {
  return { ok: false, problem };
}
