// Actions of users and of the programs in the format of the admin API: the lines of the audit log, and how each
// revision ended. Pure.
import Type from 'typebox';
import { orNull, time, toTime } from '../api-shape.ts';
import type { ActivityEntry } from '../history/activity/activity.ts';
import type { Outcomes } from '../record/outcomes.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { toShortId } from '../store/revision.ts';
import { missingJson } from './joined.ts';

const entryJson = Type.Object(
  {
    at: time,
    who: orNull(
      Type.String({
        description:
          'The name of a token, the author of a revision, `rollout`, `fleet` or `local`; null where the author is not known',
      }),
    ),
    what: Type.String({ description: 'Human-readable, with its reason' }),
    outcome: Type.String({
      description: '`done`, or why not; `seen` of what happened to the fleet by itself',
    }),
    revision: orNull(
      Type.String({ description: 'The revision that it made, or that it concerns' }),
    ),
  },
  { title: 'Deed' },
);
export type ActivityEntryJson = Type.Static<typeof entryJson>;

const entries = { deeds: Type.Array(entryJson, { description: 'The newest first' }) };
/** The answer of one control plane; an older one includes no more fields. */
export const entriesJson = Type.Object(entries);
export const activityJson = Type.Object(
  { ...entries, missing: missingJson },
  { title: 'Activity' },
);
export type ActivityJson = Type.Static<typeof activityJson>;

export interface ActivityQuestion {
  /** Part of a name, in any letter case. */
  readonly who: string | undefined;
  /** Part of the action, or the beginning of a revision. */
  readonly object: string | undefined;
  /** Wall time in milliseconds. */
  readonly sinceMs: number | undefined;
  /** Wall time in milliseconds, exclusive. */
  readonly untilMs?: number | undefined;
  readonly limit: number;
}

/** `history` has the authors of the revisions that came into force. */
export function toEntries(
  entries: readonly ActivityEntry[],
  outcomes: Outcomes,
  history: readonly RevisionInfo[],
): ActivityEntryJson[] {
  const done = entries
    // A rollout records its own take-back, for all control planes.
    .filter(({ who, what }) => who !== 'rollout' || !what.startsWith('take back '))
    .map(({ atMs, who, what, before, after, outcome }) => ({
      at: toTime(atMs),
      who,
      what,
      outcome,
      revision: after ?? before ?? null,
    }));
  return [...done, ...outcomes.map((outcome) => toEntry(outcome, history))];
}

function toEntry(
  { revisions: [revision = ''], kind, atMs, reason, by }: Outcomes[number],
  history: readonly RevisionInfo[],
): ActivityEntryJson {
  const known = history.find(({ id }) => id === revision);
  const title = known?.message?.split('\n')[0];
  const why = reason === '' ? '' : `: ${reason}`;
  const named = `revision ${toShortId(revision)}${title === undefined ? '' : ` '${title}'`}`;
  return {
    at: toTime(atMs),
    who: by || (kind === 'taken_back' ? 'rollout' : (known?.author ?? null)),
    what: `${named} ${words[kind]}${why}`,
    outcome: 'done',
    revision,
  };
}

const words: Readonly<Record<Outcomes[number]['kind'], string>> = {
  in_force: 'came into force',
  taken_back: 'was taken back',
  held_back: 'was held back',
  invalid: 'was refused as invalid',
};

/** The newest first; an entry that several control planes have on record is listed once. */
export function findEntries(
  all: readonly ActivityEntryJson[],
  { who, object, sinceMs, untilMs, limit }: ActivityQuestion,
): ActivityEntryJson[] {
  const has = (text: string, sought: string | undefined) =>
    sought === undefined || text.toLowerCase().includes(sought.toLowerCase());
  const found = all.filter(
    (entry) =>
      has(entry.who ?? '', who) &&
      (has(entry.what, object) || entry.revision?.startsWith(object ?? '')) &&
      (sinceMs === undefined || Date.parse(entry.at) >= sinceMs) &&
      (untilMs === undefined || Date.parse(entry.at) < untilMs),
  );
  const once = new Map(found.map((entry) => [`${entry.at} ${entry.what}`, entry]));
  return [...once.values()].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, limit);
}
