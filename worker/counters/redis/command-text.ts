// Redis commands as what is written to a socket (RESP, arrays of bulk strings). Kept as texts with one
// character for each byte: those of a batch are then joined and written in one piece.

/** One whole command, encoded; one character is one byte. */
export type CommandText = string;

/** The name first, then the arguments. */
export function toCommandText(...parts: readonly (string | number)[]): CommandText {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += toBulkText(typeof part === 'string' ? part : String(part));
  return text;
}

/** What is counted with nearly always, so without a loop; `amount` is decimal. */
export function toIncrementText(key: string, amount: string): CommandText {
  const end = amount === '1' ? '$1\r\n1\r\n' : toBulkText(amount);
  return `*3\r\n$6\r\nINCRBY\r\n${toBulkText(key)}${end}`;
}

function toBulkText(text: string): string {
  const length = Buffer.byteLength(text);
  // Beyond ASCII: the bytes of its UTF-8 form.
  const bytes = length === text.length ? text : Buffer.from(text).toString('latin1');
  return `$${length}\r\n${bytes}\r\n`;
}
