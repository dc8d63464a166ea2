// A store of rules in the memory of a test, which says itself when there is a new revision.
import type { Revision } from '../../control-plane/server/store/revision.ts';
import type { ConfigStore } from '../../control-plane/server/store/store.ts';
import { ruleText } from './rules-folder.ts';

export interface RevisionStore extends ConfigStore {
  /** All who watch are told. */
  publish(revision: Revision): void;
  /** As a force push does: what comes is not made upon this one. */
  drop(id: string): void;
}

/** Has a domain by which it is known. */
export function revisionOf(number: number, message?: string): Revision {
  const files = [{ path: 'a.yaml', text: ruleText(`revision-${number}`, 1) }];
  const id = String(number).padStart(40, '0');
  return { id, atMs: 0, author: undefined, message, files, problems: [] };
}

export function createRevisionStore(first: Revision): RevisionStore {
  /** Each state in its order, the newest last. */
  const all = [first];
  const dropped = new Set<string>();
  const watchers = new Set<(revision: Revision) => void>();
  const status = {
    reachable: true,
    lastSuccessMs: 0,
    failingSinceMs: undefined,
    lastError: undefined,
    revision: undefined,
  };
  return {
    description: 'a store',
    read: async () => all.at(-1) ?? first,
    watch(onRevision) {
      watchers.add(onRevision);
      return () => {
        watchers.delete(onRevision);
      };
    },
    status: () => status,
    history: async (limit) => all.toReversed().slice(0, limit),
    readRevision: async (id) => all.findLast((each) => each.id === id),
    async locate(id, newest) {
      const at = all.findIndex((each) => each.id === id);
      const newestAt = all.findLastIndex((each) => each.id === newest);
      return at === -1 ? undefined : { id, isIncluded: at <= newestAt && !dropped.has(id) };
    },
    findObstacles: async () => [],
    write: () => Promise.reject(new Error('not used')),
    trigger: async () => {},
    close: async () => {},
    drop: (id) => void dropped.add(id),
    publish(revision) {
      all.push(revision);
      for (const tell of [...watchers]) tell(revision);
    },
  };
}
