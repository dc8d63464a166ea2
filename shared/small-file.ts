// Reads a file of a bounded size: no more of it than that, whatever an operator has named.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { maskFile } from './settings/shown-value.ts';

/** A pipe that nothing writes to is empty: waiting for it would never end, and the process with it. */
const fileFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The file's text, read as UTF-8. Rejects when the file cannot be read, or has more than `maxBytes`; no message
 * quotes it. `shown`: its path in messages.
 */
export async function readSmallFile(path: string, maxBytes: number, shown = path): Promise<string> {
  const bytes = await readBeginning(path, maxBytes, shown);
  if (bytes.length > maxBytes) throw new Error(`${shown} has more than ${maxBytes} bytes`);
  return bytes.toString('utf8');
}

/** As readSmallFile, for a file with a secret, which may stand in place of its path: no message quotes it then. */
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
