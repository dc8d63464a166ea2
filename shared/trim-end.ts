// Text without what stands at its end. A pattern for that (`/0+$/`) looks for the end again from each
// place where it could begin, which takes hours for a long text of nothing else.

/** Without as many of `characters` as there are at the end of `text`. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** Without `ending`, and without the blanks before and behind it, where `text` ends with it. */
export function withoutEnding(text: string, ending: string): string {
  const trimmed = text.trimEnd();
  return trimmed.endsWith(ending) ? trimmed.slice(0, -ending.length).trimEnd() : text;
}
