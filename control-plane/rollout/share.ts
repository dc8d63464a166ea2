// Chooses the workers of a share. Each worker has a place, derived from the rollout's id, its node id and its
// instance: nobody can choose one that comes first, and other workers come first each time. Pure.
import { createHash } from 'node:crypto';

/** 12 hexadecimal digits. Workers of other makes have no instance: those with one node id share a place. */
export function placeOf(rolloutId: string, nodeId: string, instance: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([rolloutId, nodeId, instance ?? null]))
    .digest('hex')
    .slice(0, 12);
}

/**
 * Places with `percent` of the workers, rounded down, but at least one worker and never all; those of `kept`
 * first. Workers that share a place stay together, and are passed over where they are more than that. Empty
 * when no such share can be made.
 */
export function chooseShare(
  places: readonly string[],
  percent: number,
  kept: ReadonlySet<string> = new Set(),
): readonly string[] {
  const most = Math.min(
    Math.max(1, Math.floor((places.length * Math.round(percent * 1_000)) / 100_000)),
    places.length - 1,
  );
  const counts = Map.groupBy(places, (place) => place);
  const all = [...counts.keys()].sort();
  const inOrder = [
    ...all.filter((place) => kept.has(place)),
    ...all.filter((place) => !kept.has(place)),
  ];
  let left = most;
  return inOrder.filter((place) => {
    const { length } = counts.get(place) ?? [];
    if (length > left) return false;
    left -= length;
    return true;
  });
}
