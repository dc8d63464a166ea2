// The revisions of a walk, and the effect of each on the workers that have it.
import type { Revision } from '../../../control-plane/server/store/revision.ts';
import { revisionOf } from '../../support/revision-store.ts';
import { ruleText } from '../../support/rules-folder.ts';
import type { Effect } from '../../support/simulated-fleet.ts';

export interface Published {
  readonly id: string;
  /** Equal if workers get the same rules; 0: no rules at all. */
  readonly content: number;
  /** In seconds of the walk. */
  readonly at: number;
  /** Whether all workers get it without steps: it is an undo, or its author requests that. */
  readonly isImmediate: boolean;
  readonly text: string;
}

export interface Revisions {
  readonly all: readonly Published[];
  readonly newest: Published;
  readonly effects: ReadonlyMap<number, Effect>;
  find(id: string): Published | undefined;
  isBad(content: number): boolean;
  /** `content` undefined: new content. */
  create(given: {
    readonly content?: number;
    readonly effect?: Effect;
    readonly message?: string;
    readonly at: number;
    readonly isImmediate?: boolean;
    readonly what: string;
  }): { readonly revision: Revision; readonly published: Published };
}

export function createRevisions(effects: Map<number, Effect>): Revisions {
  const all: Published[] = [
    { id: revisionOf(1).id, content: 1, at: 0, isImmediate: true, text: 'the first one' },
  ];
  return {
    all,
    get newest() {
      return all.at(-1) as Published;
    },
    effects,
    find: (id) => all.find((each) => each.id === id),
    isBad: (content) => effects.has(content),
    create({ content = all.length + 1, effect, message, at, isImmediate = false, what }) {
      const id = toId(all.length + 1);
      if (effect !== undefined) effects.set(content, effect);
      const published = { id, content, at, isImmediate, text: what };
      all.push(published);
      const files =
        content === 0 ? [] : [{ path: 'a.yaml', text: ruleText(`revision-${content}`, 1) }];
      return {
        revision: { id, atMs: 0, author: undefined, message, files, problems: [] },
        published,
      };
    },
  };
}

function toId(number: number): string {
  // Its first digits identify it, as in the short ids for users.
  return String(number).padStart(4, '0').padEnd(40, 'f');
}
