// `/activity`: actions of users and of the programs, from all control planes.
import Type from 'typebox';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import { orNull, time, toTime } from '../../api-shape.ts';
import type { ActivityEntry } from '../../history/activity/activity.ts';
import type { Outcomes } from '../../record/outcomes.ts';
import { type RevisionInfo, toShortId } from '../../store/revision.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer, missingJson } from '../joined.ts';

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

const activityJson = Type.Object(
  { deeds: Type.Array(entryJson, { description: 'The newest first' }), missing: missingJson },
  { title: 'Activity' },
);
export type ActivityJson = Type.Static<typeof activityJson>;

interface ActivityQuestion {
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

/** Authors of older revisions are not included. */
const searchedRevisions = 200;
const part = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }));

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'What users and the programs did, the newest first',
    description:
      'The last 1,000 lines of the audit log of each control plane, and what became of the last 50 revisions.',
    query: Type.Object({
      who: part,
      object: part,
      since: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
      until: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
      limit: Type.Integer({ default: 100, minimum: 1, maximum: 1_000, description: 'Of a list' }),
      peer: askingPeer,
    }),
    returns: { 200: activityJson },
    failures: { 409: undefined, 503: undefined },
  });

  async GET({ who, object, since, until, limit, peer }: Fields<typeof Default.GET>) {
    const [sinceMs, untilMs] = [readTime('since', since), readTime('until', until)];
    const answers = this.askPeers('/activity?limit=1000', activityJson, peer);
    const { activity, rollout, store } = this.api;
    const history = await this.fromStore(store.history(searchedRevisions));
    const own = toEntries(activity.read(), rollout.memory().outcomes, history);
    const { values, missing } = await answers;
    const others = values.flatMap((answer) => answer.deeds);
    return {
      deeds: findEntries([...own, ...others], { who, object, sinceMs, untilMs, limit }),
      missing,
    };
  }
}

function readTime(name: string, text: string | undefined): number | undefined {
  const timeMs = text === undefined ? undefined : Date.parse(text);
  if (Number.isNaN(timeMs)) throw new HttpError(400, { detail: `${name}: ${text} is not a time` });
  return timeMs;
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
