// Text of others on a terminal or in a log, where it must not act.

/** Tabs become two spaces; what a terminal would act on, or not show, becomes `\u{...}`. */
export function escapeText(text: string): string {
  return text
    .replaceAll('\t', '  ')
    .replaceAll(
      /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu,
      (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
}
