// Finds the revision that changed a rule last, from the one in force backwards.
import { isDeepStrictEqual } from 'node:util';
import { runInSlices } from '../../shared/in-slices.ts';
import { comparing, type RuleChange } from '../rule-change.ts';
import type { Revision, RevisionInfo } from '../store/revision.ts';
import type { Examination, Examine } from './examination.ts';
import type { RuleRow } from './rule-rows.ts';

export interface LastChange {
  /** Undefined where nothing older is known, or looking took too long. */
  readonly change:
    | {
        readonly revision: RevisionInfo;
        /** The revision that was in force before it. */
        readonly before: RevisionInfo;
        readonly texts: readonly string[];
      }
    | undefined;
  /** How many revisions came into force since. */
  readonly later: number;
}

export interface LastChangeSources {
  /** The revisions that came into force, the newest first; the first one is in force. */
  readonly served: readonly RevisionInfo[];
  readonly readRevision: (id: string) => Promise<Revision | undefined>;
  readonly examine: Examine;
  /** Whether there is time to go on. */
  readonly hasTime: () => boolean;
}

/** A revision whose file has the same text as before cannot have changed the rule. */
export async function findLastChange(
  domain: string,
  row: Pick<RuleRow, 'entries' | 'file'>,
  { served, readRevision, examine, hasTime }: LastChangeSources,
): Promise<LastChange> {
  const [first, ...older] = served;
  let newer = first && (await readRevision(first.id));
  for (const [index, info] of older.entries()) {
    const before = newer && hasTime() ? await readRevision(info.id) : undefined;
    if (newer === undefined || before === undefined) return { change: undefined, later: index };
    const texts = hasSameText(before, newer, row.file) ? [] : await changesOf(before, newer);
    if (texts.length > 0) {
      const { id, atMs, author, message } = newer;
      return {
        change: { revision: { id, atMs, author, message }, before: info, texts },
        later: index,
      };
    }
    newer = before;
  }
  return { change: undefined, later: Math.max(0, served.length - 1) };

  async function changesOf(before: Revision, after: Revision): Promise<string[]> {
    return changesOfRule(domain, row, await examine(before), await examine(after));
  }
}

/** In words; empty where nothing changes for its requests, or one of the two has errors. */
export async function changesOfRule(
  domain: string,
  { entries }: Pick<RuleRow, 'entries'>,
  before: Examination,
  after: Examination,
): Promise<string[]> {
  if (before.ruleSet === undefined || after.ruleSet === undefined) return [];
  const isOfRule = (change: RuleChange) =>
    change.domain === domain &&
    (change.kind === 'domain_added' || isDeepStrictEqual(toPlain(change.requests), entries));
  const changes = await runInSlices(
    comparing(
      { ruleSet: before.ruleSet, documents: before.documents },
      { ruleSet: after.ruleSet, documents: after.documents },
    ),
  );
  return changes.filter(isOfRule).map(({ text }) => text);
}

function toPlain(requests: RuleChange['requests']) {
  return requests.map(({ key, value }) => ({ key, value }));
}

function hasSameText(before: Revision, after: Revision, path: string): boolean {
  const [one, other] = [before, after].map(
    ({ files }) => files.find((file) => file.path === path)?.text,
  );
  return one !== undefined && one === other;
}
