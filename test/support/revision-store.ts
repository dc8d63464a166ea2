// An in-memory store of rules for a test, which announces new revisions itself.
import type { Revision } from '../../control-plane/server/store/revision.ts';
import type { ConfigStore } from '../../control-plane/server/store/store.ts';
import { ruleText } from './rules-folder.ts';

export interface RevisionStore extends ConfigStore {
  /** Notifies all watchers. */
  publish(revision: Revision): void;
  /** Like a force push: later revisions do not descend from this one. */
  drop(id: string): void;
}

/** A revision with a domain that identifies it. */
export function revisionOf(number: number, message?: string): Revision {
  const files = [{ path: 'a.yaml', text: ruleText(`revision-${number}`, 1) }];
  const id = String(number).padStart(40, '0');
  return { id, atMs: 0, author: undefined, message, files, problems: [] };
}

export function createRevisionStore(first: Revision): RevisionStore {
  /** All states in order, the newest last. */
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
      for (const notify of [...watchers]) notify(revision);
    },
  };
}
