// Masks secrets in texts of other programs before they reach our logs and pages: some programs quote what was sent to
// them, or its beginning.

const mask = '*****';
/** A text that has this many characters of a secret does not match it by chance. */
const quotedLength = 6;

/**
 * `text` with each secret masked. A text that begins like a secret is masked too, up to the next space or
 * quotation mark; shorter secrets are only found whole.
 */
export function redact(text: string, secrets: readonly string[]): string {
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
  const complete = secrets.filter((secret) => secret !== '' && text.startsWith(secret, at));
  if (complete.length > 0) return at + Math.max(...complete.map((secret) => secret.length));
  let end = at;
  // A secret may contain spaces: continue while the text equals the secret.
  for (const secret of secrets) end = Math.max(end, at + countSame(text, at, secret));
  while (end < text.length && !/[\s'"`]/.test(text[end] ?? '')) end++;
  return end;
}

function countSame(text: string, at: number, secret: string): number {
  let length = 0;
  while (length < secret.length && text[at + length] === secret[length]) length++;
  return length;
}
