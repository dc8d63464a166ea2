// Reads a file of a bounded size: no more of it than that, whatever an operator has named.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { maskFile } from './settings/shown-value.ts';

/** A pipe that nothing writes to is empty: waiting for it would never end, and the process with it. */
const fileFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * The file's text, read as UTF-8. Rejects when the file cannot be read, or has more than `maxBytes`; no message
 * quotes it.
 */
export async function readSmallFile(path: string, maxBytes: number): Promise<string> {
  const bytes = await readBeginning(path, maxBytes);
  if (bytes.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
  return bytes.toString('utf8');
}

/** As readSmallFile, for a file with a secret, which may stand in place of its path: no message quotes it then. */
export async function readSecretFile(path: string, maxBytes: number): Promise<string> {
  try {
    return await readSmallFile(path, maxBytes);
  } catch (error) {
    if (error instanceof Error)
      error.message = error.message.replaceAll(path, () => maskFile(path));
    throw error;
  }
}

/** One byte more than `maxBytes` where the file has more. */
export async function readBeginning(path: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(path, fileFlags);
  const chunks: Buffer[] = await handle.createReadStream({ end: maxBytes }).toArray();
  return Buffer.concat(chunks);
}
