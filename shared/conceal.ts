// Texts of other programs for our logs and pages: some quote what was sent to them, or the beginning of
// it, and that may be a secret.

const mask = '*****';
/** So many characters of a secret, and nobody would take them for it by chance. */
const quotedLength = 6;

/**
 * `text` with a mask in place of each secret, and in place of what begins like one, up to the next space
 * or quotation mark. Secrets that are shorter than that beginning are found as a whole.
 */
export function conceal(text: string, secrets: readonly string[]): string {
  let result = '';
  let from = 0;
  for (;;) {
    const at = findFirst(text, secrets, from);
    if (at === undefined) return result + text.slice(from);
    result += text.slice(from, at) + mask;
    from = findEnd(text, secrets, at);
  }
}

function findFirst(text: string, secrets: readonly string[], from: number): number | undefined {
  let first: number | undefined;
  for (const secret of secrets) {
    if (secret === '') continue;
    const at = text.indexOf(secret.slice(0, quotedLength), from);
    if (at !== -1 && (first === undefined || at < first)) first = at;
  }
  return first;
}

function findEnd(text: string, secrets: readonly string[], at: number): number {
  const whole = secrets.filter((secret) => secret !== '' && text.startsWith(secret, at));
  if (whole.length > 0) return at + Math.max(...whole.map((secret) => secret.length));
  let end = at;
  // A secret may have spaces itself: what is the same as in one is a part of it.
  for (const secret of secrets) end = Math.max(end, at + countSame(text, at, secret));
  while (end < text.length && !/[\s'"`]/.test(text[end] ?? '')) end++;
  return end;
}

function countSame(text: string, at: number, secret: string): number {
  let length = 0;
  while (length < secret.length && text[at + length] === secret[length]) length++;
  return length;
}
