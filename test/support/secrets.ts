// Distinguishable secrets that a test gives to a program, and a search for them in the program's output, in every
// encoding that a text may have.
import { randomBytes } from 'node:crypto';

export type Secrets = ReturnType<typeof createSecrets>;

interface Needle {
  readonly of: string;
  readonly form: string;
  readonly text: string;
}

export function createSecrets() {
  const needles: Needle[] = [];
  return {
    /** Creates a secret. It contains characters that encodings and addresses represent differently, but none that a
     * token, a header or `user:password` cannot contain. */
    make(of: string) {
      const word = randomBytes(8).toString('hex');
      const halves = [`kept${word}`, `close${word}`] as const;
      for (const half of halves) needles.push(...toNeedles(of, half));
      return halves.join('/+%=@&');
    },
    /** The purpose and the encoding of each secret found in `text`; empty when there is none. */
    findIn(text: string) {
      const found = needles.filter((needle) => text.includes(needle.text));
      return [...new Set(found.map(({ of, form }) => `${of} (${form})`))];
    },
  };
}

/** Halves of letters and digits are the same percent-encoded, in JSON and in forms. */
function toNeedles(of: string, half: string): Needle[] {
  return [
    { of, form: 'as it is', text: half },
    { of, form: 'cut', text: half.slice(0, 12) },
    { of, form: 'hex', text: Buffer.from(half).toString('hex') },
    // Its offset within three bytes determines the characters.
    ...[0, 1, 2].map((before) => ({ of, form: 'base64', text: toBase64(half, before) })),
  ];
}

/** The characters that depend only on the text, whatever is before and after it. */
function toBase64(text: string, before: number): string {
  const all = Buffer.from(`${'.'.repeat(before)}${text}`).toString('base64url');
  return all.slice(before === 0 ? 0 : before + 1, -2);
}
