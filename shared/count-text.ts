// A number with its noun.

/** `1 file`, `2 files`. */
export function toCountText(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}
