// Parses a large JSON body in slices: it may contain all rules of a company, and JSON.parse would delay workers and
// probes.
import { runInSlices } from '../../../shared/in-slices.ts';
import type { AppOptions } from '../../../shared/router/index.ts';
import { BadRequest } from '../../../shared/router/index.ts';
import { readingJson, TooDeep, TooMany } from '../store/json-in-slices.ts';

/** Far above 10,000 files, the most that a method accepts. */
const maxValues = 200_000;

/** Parses as the router parses small bodies, with a limit on the number of values. */
export const parseLargeJson: NonNullable<AppOptions['largeJson']> = async (
  bytes,
  maxDepth,
  check,
) => {
  if (bytes.includes(0)) throw new BadRequest('the body holds a NUL character');
  const start = hasByteOrderMark(bytes) ? 3 : 0;
  try {
    const reading = readingJson(bytes.subarray(start), { maxDepth, maxValues }, check);
    return await runInSlices(reading);
  } catch (error) {
    if (error instanceof TooDeep)
      throw new BadRequest(`the body is nested deeper than ${maxDepth}`);
    if (error instanceof TooMany)
      throw new BadRequest(`the body has more than ${maxValues} values`);
    if (error instanceof SyntaxError) throw new BadRequest('the body is not JSON');
    if (error instanceof TypeError) throw new BadRequest('the body is not UTF-8');
    throw error;
  }
};

function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}
