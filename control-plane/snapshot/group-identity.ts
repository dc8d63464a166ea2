// Tells whether two builds are the same to every node, and keeps equal snapshots of them the same objects, by
// which senders see that there is nothing to send.
import type { GroupSnapshots } from './build.ts';
import { type Snapshot, toDigest } from './snapshot.ts';

/** The previous object where the content is equal. */
export function keepIdentities(
  groups: readonly GroupSnapshots[],
  before: readonly GroupSnapshots[],
): GroupSnapshots[] {
  const known = new Map<string, Snapshot>();
  for (const { ours, lasting, others } of before) {
    for (const snapshot of [ours, lasting, others]) known.set(snapshot.version, snapshot);
  }
  const keep = (snapshot: Snapshot) => known.get(snapshot.version) ?? snapshot;
  return groups.map((each) => ({
    ...each,
    ours: keep(each.ours),
    lasting: keep(each.lasting),
    others: keep(each.others),
  }));
}

/** Equal exactly where every node gets the same. */
export function toContent(groups: readonly GroupSnapshots[]): string {
  // Conditions matter too: a node may change groups while no group changes its content.
  const shown = JSON.stringify(
    groups.map(({ group: { match }, ours, others }) => [
      match.id?.map(({ text }) => text),
      match.cluster?.map(({ text }) => text),
      [...match.metadata].map(([name, patterns]) => [name, patterns.map(({ text }) => text)]),
      ours.version,
      others.version,
    ]),
  );
  return toDigest(shown);
}
