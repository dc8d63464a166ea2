// Records spontaneous events of the fleet, for the chart of the last hour and for the activity: outages, in which
// callers get answers other than those of the rules, from beginning to end; workers that connected or left; and control
// planes that answer or stop answering. It checks every few seconds; `step` is pure.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import type { Log } from '../../../shared/log.ts';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Activity } from '../history/activity/activity.ts';
import type { Mark, Marks } from '../history/last-hour/marks.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { countAgreements, findDisagreements } from './differing-workers.ts';
import { toFleetJson, type WorkerSnapshots } from './fleet-json.ts';
import { collectFacts, type NoticeJson, toNotices } from './notices.ts';

/** One check of the fleet. */
export interface SeenFleet {
  readonly atMs: number;
  readonly notices: readonly NoticeJson[];
  /** Names, by the key that identifies a worker. */
  readonly workers: ReadonlyMap<string, string>;
  /** Workers that left without a goodbye. */
  readonly broken: ReadonlySet<string>;
}

/** A condition begins when two checks in a row have seen it, and ends when two in a row have not. */
interface Condition {
  readonly notice: NoticeJson;
  readonly sinceMs: number;
  readonly isNoted: boolean;
  /** Checks in a row that have not seen it. */
  readonly unseen: number;
}

export interface FleetEventsState {
  readonly conditions: ReadonlyMap<string, Condition>;
  readonly workers: ReadonlyMap<string, string>;
}

type FleetMark = Omit<Mark, 'revision'>;

/** Workers that connected or left since the previous check: their names, by what happened to them. */
export type WorkerMoves = Readonly<Record<keyof typeof moves, readonly string[]>>;

const moves = { came: 'connected', lost: 'lost: the connection broke', left: 'left' } as const;

export const noFleet: FleetEventsState = { conditions: new Map(), workers: new Map() };
const mostNames = 5;

export function step(
  before: FleetEventsState,
  { atMs, notices, workers, broken }: SeenFleet,
): {
  readonly state: FleetEventsState;
  readonly events: readonly FleetMark[];
  readonly moved: WorkerMoves;
} {
  const events: FleetMark[] = [];
  const conditions = new Map<string, Condition>();
  for (const notice of notices) {
    const key = toKey(notice);
    const known = before.conditions.get(key);
    const sinceMs = known?.sinceMs ?? (notice.since === null ? atMs : Date.parse(notice.since));
    const isNoted = known !== undefined;
    // Uses the current text: at the first check not all workers have reported.
    if (known?.isNoted === false) {
      events.push({ kind: 'outage', atMs: sinceMs, text: `${notice.title}: ${notice.effect}` });
    }
    conditions.set(key, { notice, sinceMs, isNoted, unseen: 0 });
  }
  for (const [key, known] of before.conditions) {
    if (conditions.has(key)) continue;
    const { title, effect, kind } = known.notice;
    if (!known.isNoted) {
      // Other conditions may come from a worker that is starting.
      if (!kind.startsWith('store_')) continue;
      events.push({ kind: 'outage', atMs: known.sinceMs, text: `${title}: ${effect}` });
    } else if (known.unseen === 0) {
      conditions.set(key, { ...known, unseen: 1 });
      continue;
    }
    const lasted = formatDuration(Math.max(1, Math.round((atMs - known.sinceMs) / 1000)) * 1000);
    events.push({ kind: 'recovered', atMs, text: `${title}: over, after ${lasted}` });
  }
  const left = [...before.workers].filter(([id]) => !workers.has(id));
  const namesOf = (all: readonly (readonly [string, string])[]) => all.map(([, name]) => name);
  const moved = {
    came: namesOf([...workers].filter(([id]) => !before.workers.has(id))),
    lost: namesOf(left.filter(([id]) => broken.has(id))),
    left: namesOf(left.filter(([id]) => !broken.has(id))),
  };
  return { state: { conditions, workers }, events, moved };
}

/** Different failure modes are different conditions, and so are the settings of each group. */
function toKey({ kind, title, effect }: NoticeJson): string {
  if (kind.startsWith('store_')) return `${kind} ${effect.replace('their ', '')}`;
  return kind === 'settings_differ' ? `${kind} ${title}` : kind;
}

function toMoveText(move: keyof typeof moves, all: readonly string[]): string {
  const names = all.slice(0, mostNames).map((name) => toExcerpt(name, 60));
  const more = all.length > names.length ? ', ...' : '';
  return all.length === 1
    ? `Worker ${names[0]} ${moves[move]}`
    : `${toCountText(all.length, 'worker')} ${moves[move]}: ${names.join(', ')}${more}`;
}

export interface FleetEventsDeps {
  readonly snapshots: WorkerSnapshots;
  readonly workers: ConnectedWorkers;
  readonly fleet: Pick<Fleet, 'list'>;
  readonly marks: Marks;
  readonly activity: Pick<Activity, 'note'>;
  readonly log: Log;
  readonly clock: Clock;
}

export interface FleetEvents {
  /** Receives the answers of all peers. */
  noteAnswers(answers: readonly Pick<PeerAnswer<unknown>, 'url' | 'error'>[]): void;
  close(): void;
}

/** A little more than the time between two reports of a worker. */
export const pollMs = 6_000;
/** Moves of workers within this time are one mark: a deployment restarts all of them. */
const togetherMs = 60_000;

export function watchFleet(deps: FleetEventsDeps): FleetEvents {
  const { marks, activity, log, clock } = deps;
  let state = noFleet;
  const silent = new Set<string>();
  const lastMoves = new Map<keyof typeof moves, { mark: Mark; names: readonly string[] }>();

  function note({ kind, atMs, text }: FleetMark): void {
    const isKnown = (mark: Mark) => mark.kind === kind && mark.text === text && mark.atMs === atMs;
    // An outage recorded by an earlier process continues.
    if (marks.read().some(isKnown)) return;
    marks.note({ kind, revision: undefined, text, atMs });
    activity.note({
      ...{ who: 'fleet', address: undefined, what: text, requestId: '' },
      ...{ before: undefined, after: undefined, outcome: 'seen' },
    });
    const line = `Fleet: ${escapeText(text)}`;
    if (kind === 'outage') log.warning(line);
    else log.info(line);
  }

  function noteMove(move: keyof typeof moves, moved: readonly string[]): void {
    if (moved.length === 0) return;
    const atMs = clock.wallMs();
    const last = lastMoves.get(move);
    const isNear = last !== undefined && atMs - last.mark.atMs < togetherMs;
    const names = isNear ? [...last.names, ...moved] : moved;
    const mark = { kind: 'workers', revision: undefined, text: toMoveText(move, names) } as const;
    const noted = marks.note(
      { ...mark, atMs: isNear ? last.mark.atMs : atMs },
      isNear ? last.mark : undefined,
    );
    lastMoves.set(move, { mark: noted, names });
  }

  function poll(): void {
    const seen = readFleet(deps, clock.wallMs());
    const next = step(state, seen);
    state = next.state;
    for (const event of next.events) note(event);
    for (const move of ['came', 'lost', 'left'] as const) noteMove(move, next.moved[move]);
  }

  note({ kind: 'control_plane', atMs: clock.wallMs(), text: 'This control plane started' });
  const close = repeatAfter(clock, pollMs, poll);
  return {
    noteAnswers(answers) {
      const atMs = clock.wallMs();
      for (const { url, error } of answers) {
        if (silent.has(url) === (error !== undefined)) continue;
        if (error === undefined) silent.delete(url);
        else silent.add(url);
        const text =
          error === undefined
            ? `Control plane ${url} answers again`
            : `Control plane ${url} does not answer: ${error}`;
        note({ kind: 'control_plane', atMs, text });
      }
    },
    close,
  };
}

function readFleet({ snapshots, workers, fleet }: FleetEventsDeps, atMs: number): SeenFleet {
  const connected = workers.list();
  const linked = fleet.list();
  const { workers: rows } = toFleetJson(connected, linked, [], snapshots);
  const gone = workers.vanished();
  const facts = collectFacts({ workers: rows, linked, nowMs: atMs });
  const reporting = linked.filter(({ figures }) => figures !== undefined).length;
  const notices = toNotices([facts], {
    workers: { connected: rows.length, gone: gone.length, reporting },
    lastGoneAt: undefined,
    disagreements: findDisagreements(countAgreements(rows)),
    unenforced: [],
    // The state of the rules' store is shown on the page itself, and logged.
    store: { description: '', reachable: true, failingSince: null, error: null },
    stale: null,
  });
  const toId = (instance: string | null | undefined, id: string, address: string) =>
    instance == null ? `${id} ${address}` : instance;
  return {
    atMs,
    notices,
    workers: new Map(
      rows.map(({ instance, id, address, name }) => [toId(instance, id, address), name]),
    ),
    broken: new Set(gone.map(({ instance, node, address }) => toId(instance, node.id, address))),
  };
}
