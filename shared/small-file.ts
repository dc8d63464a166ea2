// Reads a small file: never more than its bound, whatever file an operator has named.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { maskFile } from './settings/shown-value.ts';

/** O_NONBLOCK makes a pipe without a writer appear empty: waiting for it would block the process for ever. */
const fileFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The file's text, read as UTF-8. Rejects when the file cannot be read, or has more than `maxBytes`; no message quotes
 * its content. `shown` is its path in messages.
 */
export async function readSmallFile(path: string, maxBytes: number, shown = path): Promise<string> {
  const bytes = await readBeginning(path, maxBytes, shown);
  if (bytes.length > maxBytes) throw new Error(`${shown} has more than ${maxBytes} bytes`);
  return bytes.toString('utf8');
}

/**
 * As readSmallFile, for a file with a secret. The path may be the secret itself by mistake: messages do not quote it
 * then.
 */
export function readSecretFile(path: string, maxBytes: number): Promise<string> {
  return readSmallFile(path, maxBytes, maskFile(path));
}

/** One byte more than `maxBytes` where the file has more. */
export async function readBeginning(path: string, maxBytes: number, shown = path): Promise<Buffer> {
  const handle = await open(path, fileFlags).catch((error: Error) => {
    error.message = error.message.replaceAll(`'${path}'`, () => `'${shown}'`);
    throw error;
  });
  const chunks: Buffer[] = await handle.createReadStream({ end: maxBytes }).toArray();
  return Buffer.concat(chunks);
}
