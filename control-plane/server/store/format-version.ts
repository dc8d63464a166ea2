// The format versions of what control planes keep: each text is JSON with its version in the field `format`. A program
// reads the two newest versions that it knows, so that the previous and the next program can run on the same state.

/** The version of content that another program wrote; undefined if the version is in `readable`, or if it is missing
 * and the content is damaged. */
export function toOtherVersion(content: unknown, readable: readonly number[]): string | undefined {
  const { format } = Object(content) as { format?: unknown };
  if (typeof format !== 'number' || !Number.isSafeInteger(format)) return undefined;
  if (readable.includes(format)) return undefined;
  const age = format > Math.max(...readable) ? 'a newer' : 'an older';
  return `${age} version (format ${format})`;
}
