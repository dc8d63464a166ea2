// Divides the rest of a limit among the callers that ask for it: max-min fair, by their demand.

/** Added to a caller's demand, so that a growing demand becomes visible. */
const headroom = 0.1;
const leastHeadroom = 1;

/**
 * The share of each: callers that ask for less than an equal part get what they ask for plus a tenth, at least 1; the
 * others divide the rest equally, and what is then left is divided equally among all. The sum is `capacity`, unless no
 * caller asks. If there is less than 1 for each, those that ask for most get 1 and the others nothing.
 *
 * `asked` is in the unit of `capacity`; undefined for an unknown demand, which counts as an equal part.
 */
export function toShares(capacity: number, asked: readonly (number | undefined)[]): number[] {
  const count = asked.length;
  if (capacity < count) return toUnits(capacity, asked);
  const needs = asked.map((each) =>
    each === undefined ? Number.POSITIVE_INFINITY : each + Math.max(leastHeadroom, each * headroom),
  );
  const shares = new Array<number>(count).fill(0);
  const ascending = [...needs.keys()].sort((a, b) => (needs[a] ?? 0) - (needs[b] ?? 0));
  let left = capacity;
  for (const [position, index] of ascending.entries()) {
    const share = Math.min(needs[index] ?? 0, left / (count - position));
    shares[index] = share;
    left -= share;
  }
  return left > 0 ? shares.map((share) => share + left / count) : shares;
}

function toUnits(capacity: number, asked: readonly (number | undefined)[]): number[] {
  const units = Math.floor(capacity);
  const shares = new Array<number>(asked.length).fill(0);
  const most = (index: number) => asked[index] ?? Number.POSITIVE_INFINITY;
  const descending = [...asked.keys()].sort((a, b) =>
    most(a) === most(b) ? a - b : most(b) - most(a),
  );
  for (const index of descending.slice(0, units)) shares[index] = 1;
  return shares;
}

/** The given shares as whole numbers; the remainder goes to the first ones. */
export function toIntegerShares(shares: readonly number[], capacity: number): number[] {
  const full = shares.map(Math.floor);
  let left = Math.floor(capacity) - full.reduce((sum, share) => sum + share, 0);
  return full.map((share, index) => {
    if (left <= 0 || (shares[index] ?? 0) === share) return share;
    left--;
    return share + 1;
  });
}
