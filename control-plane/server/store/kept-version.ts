// The versions of what control planes keep: each text is JSON with its version in the field `format`. A program reads the
// two newest that it knows, so that the program before and after it can run on the same state.

/** Names the version of a content that another program wrote; undefined where it is of a version in `readable`, or has
 * no version and is damaged. */
export function toOtherVersion(content: unknown, readable: readonly number[]): string | undefined {
  const { format } = Object(content) as { format?: unknown };
  if (typeof format !== 'number' || !Number.isSafeInteger(format)) return undefined;
  if (readable.includes(format)) return undefined;
  const age = format > Math.max(...readable) ? 'a newer' : 'an older';
  return `${age} version (format ${format})`;
}
