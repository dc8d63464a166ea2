// Which workers a share of a fleet is: each node has a place between 0 and 1 that follows from its id
// alone, and a share is all nodes up to some place. So a worker that reconnects, or is served by another
// control plane, stays on its side.
import { createHash } from 'node:crypto';

/** From 0 to below 1. */
export function placeOf(nodeId: string): number {
  return createHash('sha256').update(nodeId).digest().readUIntBE(0, 6) / 2 ** 48;
}

/**
 * The place up to which nodes are `percent` of these workers, rounded down, but at least one of them and
 * never all. Undefined when they cannot be told apart: fewer than two ids.
 */
export function findLimit(nodeIds: readonly string[], percent: number): number | undefined {
  const places = nodeIds.map(placeOf).sort((a, b) => a - b);
  const first = places[0];
  const last = places.at(-1);
  if (first === undefined || last === undefined || first === last) return undefined;
  const wanted = Math.max(1, Math.floor((places.length * Math.round(percent * 1_000)) / 100_000));
  // Nodes of one id are on one side together: as many as are left out, never more than the share.
  const limit = places[wanted - 1] ?? first;
  const fits = limit !== places[wanted] && limit !== last;
  if (fits) return limit;
  return places.findLast((place) => place < limit) ?? first;
}
