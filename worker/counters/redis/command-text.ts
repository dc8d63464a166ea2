// Redis commands as what is written to a socket (RESP, arrays of bulk strings). Kept as texts with one
// character for each byte: those of a batch are then joined and written in one piece.
// The global of the same name is looked up anew at each use.
import { Buffer } from 'node:buffer';

/** One whole command, encoded; one character is one byte. */
export type CommandText = string;

/** The name first, then the arguments. */
export function toCommandText(...parts: readonly (string | number)[]): CommandText {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += toBulkText(typeof part === 'string' ? part : String(part));
  return text;
}

/** The beginnings of increments, by the length of the key, for the usual lengths: made once, because
 * nearly every command is one and its parts would cost more than all of it. */
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
