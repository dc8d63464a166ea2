// Reads a file that holds a secret alone: no more of it than a secret may have, whatever an operator has named.
import { createReadStream } from 'node:fs';

/**
 * The file's text, read as UTF-8. Rejects when the file cannot be read, or has more than `maxBytes`; no message
 * quotes it.
 */
export async function readSmallFile(path: string, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = await createReadStream(path, { end: maxBytes }).toArray();
  const bytes = Buffer.concat(chunks);
  if (bytes.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
  return bytes.toString('utf8');
}
