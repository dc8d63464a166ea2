// Removes characters from the end of a text. A pattern such as `/0+$/` takes quadratic time for this.

/** `text` without the `characters` at its end. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** `text` without `ending` and the blanks around it, if it ends with it. */
export function withoutEnding(text: string, ending: string): string {
  const trimmed = text.trimEnd();
  return trimmed.endsWith(ending) ? trimmed.slice(0, -ending.length).trimEnd() : text;
}
