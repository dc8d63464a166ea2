// Chooses the workers of a share: each node has a place between 0 and 1, derived from its id alone, and a
// share is all nodes up to some place. So a worker that reconnects, or changes its control plane, stays on
// its side.
import { createHash } from 'node:crypto';

/** From 0 to below 1. */
export function placeOf(nodeId: string): number {
  return createHash('sha256').update(nodeId).digest().readUIntBE(0, 6) / 2 ** 48;
}

/**
 * The place up to which nodes are `percent` of the workers at these places, rounded down, but at least one of them and
 * never all. Undefined with fewer than two different places.
 */
export function findLimit(nodePlaces: readonly number[], percent: number): number | undefined {
  const places = nodePlaces.toSorted((a, b) => a - b);
  const first = places[0];
  const last = places.at(-1);
  if (first === undefined || last === undefined || first === last) return undefined;
  const wanted = Math.max(1, Math.floor((places.length * Math.round(percent * 1_000)) / 100_000));
  // Nodes with the same id are on one side together: the share may be smaller for that, never larger.
  const limit = places[wanted - 1] ?? first;
  const fits = limit !== places[wanted] && limit !== last;
  if (fits) return limit;
  return places.findLast((place) => place < limit) ?? first;
}
