// What is the same for the nodes of two builds, by which the senders know that there is nothing to send.
import type { GroupSnapshots } from './build.ts';
import type { Snapshot } from './snapshot.ts';

/** Of equal content the object that was there before. */
export function keepIdentities(
  groups: readonly GroupSnapshots[],
  before: readonly GroupSnapshots[],
): GroupSnapshots[] {
  const known = new Map<string, Snapshot>();
  for (const { ours, others } of before) known.set(ours.version, ours).set(others.version, others);
  const keep = (snapshot: Snapshot) => known.get(snapshot.version) ?? snapshot;
  return groups.map((each) => ({ ...each, ours: keep(each.ours), others: keep(each.others) }));
}

/** Whether every node gets the same. */
export function isSameToAll(
  before: readonly GroupSnapshots[],
  after: readonly GroupSnapshots[],
): boolean {
  // Conditions count as well: a node may be in another group without any group's having changed.
  const shown = (groups: readonly GroupSnapshots[]) =>
    JSON.stringify(
      groups.map(({ group: { match }, ours, others }) => [
        match.id?.map(({ text }) => text),
        match.cluster?.map(({ text }) => text),
        [...match.metadata].map(([name, patterns]) => [name, patterns.map(({ text }) => text)]),
        ours.version,
        others.version,
      ]),
    );
  return shown(before) === shown(after);
}
