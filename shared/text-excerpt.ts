// Shortens a value for a message, so that a huge one does not fill it.

/** At most `length` UTF-16 code units of `text`, and `...` when something was cut. */
export function toExcerpt(text: string, length = 60): string {
  return text.length <= length ? text : `${text.slice(0, length)}...`;
}
