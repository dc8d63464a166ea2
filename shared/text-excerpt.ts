// Shortens a value for a message.

/** At most `length` UTF-16 code units of `text`, and `...` when something was cut. */
export function toExcerpt(text: string, length = 60): string {
  return text.length <= length ? text : `${text.slice(0, length)}...`;
}
