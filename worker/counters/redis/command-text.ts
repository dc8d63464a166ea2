// Encodes Redis commands for the wire (RESP, arrays of bulk strings). As texts with one character per
// byte: those of a batch are joined and written in one piece. Buffer is imported, since a global is looked
// up at each use.
import { Buffer } from 'node:buffer';

/** One encoded command; one character is one byte. */
export type CommandText = string;

/** The name first, then the arguments. */
export function toCommandText(...parts: readonly (string | number)[]): CommandText {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += toBulkText(typeof part === 'string' ? part : String(part));
  return text;
}

/** The fixed beginnings of increments, by the length of the key, for the usual lengths: made once, because
 * nearly every command is an increment. */
const incrementHeads = Array.from({ length: 512 }, (_, length) => toIncrementHead(length));

/** `amount` is decimal. */
export function toIncrementText(key: string, amount: string): CommandText {
  const length = Buffer.byteLength(key);
  const head = incrementHeads[length] ?? toIncrementHead(length);
  const bytes = length === key.length ? key : toBytes(key);
  return amount === '1'
    ? `${head}${bytes}\r\n$1\r\n1\r\n`
    : `${head}${bytes}\r\n${toBulkText(amount)}`;
}

function toIncrementHead(length: number): string {
  return `*3\r\n$6\r\nINCRBY\r\n$${length}\r\n`;
}

export function toBulkText(text: string): string {
  const length = Buffer.byteLength(text);
  return `$${length}\r\n${length === text.length ? text : toBytes(text)}\r\n`;
}

/** Beyond ASCII: the bytes of the UTF-8 form. */
function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}
