// Escapes foreign text for terminals and logs, so that it has no effect there.

/** Tabs become two spaces; control and invisible characters become `\u{...}`. */
export function escapeText(text: string): string {
  return text
    .replaceAll('\t', '  ')
    .replaceAll(
      /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
}
