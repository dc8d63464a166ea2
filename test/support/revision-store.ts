// A store of rules in the memory of a test, which says itself when there is a new revision.
import type { Revision } from '../../control-plane/store/revision.ts';
import type { ConfigStore } from '../../control-plane/store/store.ts';
import { ruleText } from './rules-folder.ts';

export interface RevisionStore extends ConfigStore {
  /** All who watch are told. */
  publish(revision: Revision): void;
}

/** Has a domain by which it is known. */
export function revisionOf(number: number, message?: string): Revision {
  const files = [{ path: 'a.yaml', text: ruleText(`revision-${number}`, 1) }];
  const id = String(number).padStart(40, '0');
  return { id, atMs: 0, author: undefined, message, files, problems: [] };
}

/** Has no more than the revision that was published last. */
export function createRevisionStore(first: Revision): RevisionStore {
  let newest = first;
  const watchers = new Set<(revision: Revision) => void>();
  const status = {
    reachable: true,
    lastSuccessMs: 0,
    failingSinceMs: undefined,
    lastError: undefined,
    revision: undefined,
  };
  const unused = () => Promise.reject(new Error('not used'));
  return {
    description: 'a store',
    read: async () => newest,
    watch(onRevision) {
      watchers.add(onRevision);
      return () => {
        watchers.delete(onRevision);
      };
    },
    status: () => status,
    history: unused,
    readRevision: unused,
    locate: unused,
    write: unused,
    trigger: async () => {},
    close: async () => {},
    publish(revision) {
      newest = revision;
      for (const tell of [...watchers]) tell(revision);
    },
  };
}
