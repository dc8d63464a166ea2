// Texts that live longer than the request they came with.

/**
 * Returns an equal text that retains nothing else in memory. A part of a text, such as one read from a JSON body,
 * retains the whole text, and a text joined from parts retains all of them, also as the key of a map. Costs 100 ns for
 * a short text; call it where a text is stored, not for each request.
 */
export function owned(text: string): string {
  // Joining writes the parts into a new flat text, which maps also find three times as fast as a part of another text.
  return text.length < 2 ? text : [text.charAt(0), text.slice(1)].join('');
}
