// Reports whether the newest revision is in force everywhere, in one word and one line, with the state of the store and
// of each worker. Pure.

import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { toHeading } from '../../../shared/rules/problem/problem-text.ts';
import { orNull, time, toTime } from '../api-shape.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { PeerWorkers } from '../record/peers/peers.ts';
import type { MemoryState } from '../record/record-state.ts';
import {
  type RolloutState,
  rolloutJson,
  toRolloutJson,
  toRolloutText,
} from '../rollout/rollout-json.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import {
  agreementsJson,
  countAgreements,
  findUnenforced,
  unenforcedJson,
} from './differing-workers.ts';
import {
  type FleetJson,
  fleetJson,
  goneWorkerJson,
  type WorkerJson,
  workerJson,
} from './fleet-json.ts';
import { collectFacts, noticeFacts, noticeJson, toClockNotice } from './notices.ts';
import { problemJson, toProblemJson } from './problem-json.ts';
import { revisionFields, toRevisionJson } from './revision-json.ts';
import { toTrafficJson, trafficJson } from './traffic-json.ts';

/** The state of a requested revision. */
const askedJson = Type.Object({
  /** The full id, where it is known. */
  id: Type.String(),
  /** `superseded`: the newest was made from it. `apart`: the newest was not. `missing`: the store does not have it.
   * `not_known`: no poll of the store succeeded. */
  place: Type.Union([
    Type.Literal('newest'),
    Type.Literal('superseded'),
    Type.Literal('apart'),
    Type.Literal('missing'),
    Type.Literal('not_known'),
  ]),
});
export type AskedJson = Type.Static<typeof askedJson>;

export const statusJson = Type.Object(
  {
    /** `held_back`: the newest revision waits for an approval: it would remove most limits, or no share of the workers
     * can receive it first. `taken_back`: it failed its rollout, or an operator aborted the rollout. `refused`: workers
     * refuse what they are sent. `no_workers`: the newest revision is served, but no worker is connected. */
    verdict: Type.Union([
      Type.Literal('in_force'),
      Type.Literal('no_workers'),
      Type.Literal('pending'),
      Type.Literal('refused'),
      Type.Literal('held_back'),
      Type.Literal('taken_back'),
      Type.Literal('invalid'),
      Type.Literal('not_known'),
    ]),
    text: Type.String(),
    /** Null when no revision was requested. */
    asked: orNull(askedJson),
    newest: orNull(
      Type.Object({ ...revisionFields, valid: Type.Boolean(), problems: Type.Array(problemJson) }),
    ),
    inForce: orNull(
      Type.Object({
        ...revisionFields,
        /** Equal if every worker gets the same rules, whatever their revision. */
        content: Type.String(),
        since: time,
        /** Domains that at least one worker gets. */
        domains: Type.Integer(),
        limits: Type.Integer(),
        /** The first groups whose workers get fewer domains. An older control plane counts all domains, and reports no
         * groups. */
        fewer: Type.Optional(
          Type.Array(
            Type.Object({
              group: Type.String(),
              domains: Type.Integer(),
              limits: Type.Integer(),
            }),
          ),
        ),
        fewerInAll: Type.Optional(Type.Integer({ description: 'Of such groups' })),
      }),
    ),
    /** Whether the served revision has been the same for 10 seconds: no change is in transit between control planes. */
    settled: Type.Boolean(),
    stale: orNull(Type.Object({ reason: Type.String(), since: time })),
    store: Type.Object({
      description: Type.String(),
      reachable: Type.Boolean(),
      lastSuccess: orNull(time),
      failingSince: orNull(time),
      error: orNull(Type.String()),
    }),
    workers: Type.Object({
      connected: Type.Integer(),
      inForce: Type.Integer(),
      /** Workers that have the revision on trial. */
      onTrial: Type.Integer(),
      pending: Type.Integer(),
      refused: Type.Integer(),
      /** Workers whose connection broke in the last hour, and that have not reconnected. */
      gone: Type.Integer(),
    }),
    /** The instance of each connected worker, null for one without an instance; only in the answer to a peer. */
    instances: Type.Optional(Type.Array(orNull(Type.String()))),
    /** Workers that left within the last five minutes; only in the answer to a peer. */
    goneLately: Type.Optional(Type.Array(goneWorkerJson)),
    /** The facts for `notices`; only in the answer to a peer. */
    facts: Type.Optional(noticeFacts),
    /** What callers get instead of the answers of the rules, the worst first. An older control plane does not include
     * it. */
    notices: Type.Optional(Type.Array(noticeJson)),
    /** The individual workers at the same moment; null unless requested. */
    fleet: orNull(fleetJson),
    /** The traffic of all workers that report; null when none does. */
    traffic: orNull(trafficJson),
    /** The rollout of a revision that reaches the workers in steps; null when none is running. */
    rollout: orNull(rolloutJson),
    /** Why the next revision could not reach the workers in steps; null when it could. */
    rolloutWarning: orNull(Type.String()),
    /** The place where verdicts are stored: which revisions were taken back, held back or approved. */
    memory: Type.Object({
      place: Type.String(),
      problem: orNull(Type.String({ description: 'Why it may get lost, or is not shared' })),
    }),
    /** Unreadable files of the state directory, which were renamed; those of a peer with ` at ` and its address.
     * Missing in the answer of an older control plane. */
    setAside: Type.Optional(Type.Array(Type.String())),
    /** Workers that are pending or have refused; at most 100 of them. */
    waitingFor: Type.Array(workerJson),
    /** Domains with fields that only Ratelane's own workers receive, and the fields. */
    leftOut: Type.Array(Type.Object({ domain: Type.String(), fields: Type.Array(Type.String()) })),
    /** This control plane and its peers; empty if it has none. */
    controlPlanes: Type.Array(
      Type.Object({
        /** The address of a peer; `this` for the control plane that answers. */
        url: Type.String(),
        /** Null when it does not answer. */
        connected: orNull(Type.Integer()),
        /** The id of the revision; null also while nothing is in force. */
        inForce: orNull(Type.String()),
        /** The id of a revision that reaches the workers in steps. */
        trial: orNull(Type.String()),
        /** The peer's `memory.problem`. */
        memoryProblem: orNull(Type.String()),
        /** Why it does not answer, and where its workers are. */
        error: orNull(Type.String()),
      }),
    ),
    /** Workers that cannot enforce fields of `leftOut`, by domain. */
    unenforced: Type.Array(unenforcedJson),
    /** How the workers of each node group count. */
    agreements: Type.Array(agreementsJson),
    /** Node groups whose workers count differently because of their settings. */
    disagreements: Type.Array(agreementsJson),
  },
  { title: 'Status' },
);
export type StatusJson = Type.Static<typeof statusJson>;

export const maxWaitingFor = 100;
/** Control planes follow each other within a few seconds. */
export const settleMs = 10_000;
/** A worker that has been gone for longer is not expected to reconnect. The gauge has the same limit. */
export const goneLatelyMs = 300_000;

export interface StatusSources {
  readonly storeDescription: string;
  readonly state: SnapshotState;
  /** The workers of this control plane. */
  readonly fleet: FleetJson;
  readonly linked: readonly LinkedWorker[];
  readonly asked: AskedJson | null;
  readonly nowMs: number;
  /** Undefined when none is running. */
  readonly rollout: RolloutState | undefined;
  /** Why the next revision could not reach the workers in steps. */
  readonly rolloutWarning: string | undefined;
  readonly memory: MemoryState;
  /** How the clock of this control plane differs from those of others. */
  readonly clockProblem: string | undefined;
  /** Paths of unreadable files. */
  readonly setAside: readonly string[];
}

/** What one control plane knows; `toStatus` makes the status from it. */
export type OwnStatus = StatusJson & { readonly fleet: FleetJson };

export function toOwnStatus(sources: StatusSources): OwnStatus {
  const { state, fleet, linked, storeDescription, clockProblem, nowMs } = sources;
  const { newest, inForce, store } = state;
  const { workers, gone } = fleet;
  const stale = findStaleness(state);
  const counts = { ...countWorkers(workers), gone: gone.length };
  return {
    ...judge(state, counts, workers, sources),
    facts: collectFacts({ workers, linked, nowMs }),
    notices: clockProblem === undefined ? [] : [toClockNotice(clockProblem)],
    asked: sources.asked,
    newest: newest
      ? {
          ...toRevisionJson(newest.revision),
          valid: newest.valid,
          problems: newest.problems.map(toProblemJson),
        }
      : null,
    inForce: inForce
      ? {
          ...toRevisionJson(inForce.revision),
          content: inForce.content,
          since: toTime(inForce.sinceMs),
          domains: inForce.served.domains,
          limits: inForce.served.limits,
          fewer: [...inForce.served.fewer],
          fewerInAll: inForce.served.fewerInAll,
        }
      : null,
    settled: isSettled(state, sources.rollout, nowMs),
    stale: stale ? { reason: stale.reason, since: toTime(stale.sinceMs) } : null,
    store: {
      description: storeDescription,
      reachable: store.reachable,
      lastSuccess: toTimeOrNull(store.lastSuccessMs),
      failingSince: toTimeOrNull(store.failingSinceMs),
      error: store.lastError ?? null,
    },
    workers: counts,
    instances: workers.map(({ instance }) => instance),
    goneLately: gone.filter(({ at }) => nowMs - Date.parse(at) < goneLatelyMs),
    fleet,
    traffic: toTrafficJson(linked),
    rollout: toRolloutJson(sources.rollout),
    rolloutWarning: sources.rolloutWarning ?? null,
    memory: { place: sources.memory.location, problem: toMemoryProblem(sources.memory) },
    setAside: [...sources.setAside],
    waitingFor: workers.filter(isWaitedFor).slice(0, maxWaitingFor),
    leftOut: (inForce?.leftOut ?? []).map(({ domain, fields }) => ({
      domain,
      fields: [...fields],
    })),
    controlPlanes: [],
    unenforced: inForce ? findUnenforced(workers, inForce) : [],
    agreements: countAgreements(workers),
    disagreements: [],
  };
}

/** Undefined except in the answer to a peer. */
export function listInstances({ instances }: StatusJson): PeerWorkers | undefined {
  return instances;
}

/** A fleet that has lost more than a third of its workers without a goodbye is not well, whatever the state of the
 * others. */
export function judgeShrunk(
  { verdict, text }: Pick<StatusJson, 'verdict' | 'text'>,
  connected: number,
  gone: number,
): Pick<StatusJson, 'verdict' | 'text'> {
  if (verdict !== 'in_force' || 2 * gone <= connected) return { verdict, text };
  const all = toCountText(connected + gone, 'worker');
  const lost = `${gone} of ${all} of the last 5 minutes ${gone === 1 ? 'is' : 'are'} gone`;
  return { verdict: 'pending', text: `${text}, but ${lost} without a goodbye` };
}

/** Rules that an earlier process kept are stale at once, even while the store can be reached. */
export function findStaleness(state: SnapshotState): SnapshotState['stale'] {
  const { stale, newest, inForce } = state;
  if (stale !== undefined || newest !== undefined || inForce === undefined) return stale;
  return { reason: 'store_unreachable', sinceMs: inForce.sinceMs };
}

function isSettled(
  { inForce, stale }: SnapshotState,
  rollout: RolloutState | undefined,
  nowMs: number,
): boolean {
  const refusedAtMs = stale?.reason === 'newest_invalid' ? stale.sinceMs : 0;
  const rolloutMs = rollout === undefined ? 0 : Date.parse(rollout.since);
  const changedAtMs = Math.max(inForce?.sinceMs ?? 0, rolloutMs, refusedAtMs);
  return nowMs - changedAtMs >= settleMs;
}

function judge(
  state: SnapshotState,
  counts: StatusJson['workers'],
  workers: readonly WorkerJson[],
  { nowMs, rollout, memory }: Pick<StatusSources, 'nowMs' | 'rollout' | 'memory'>,
): Pick<StatusJson, 'verdict' | 'text'> {
  const { newest, inForce, store } = state;
  const consequence = inForce
    ? `revision ${toShortId(inForce.revision.id)} stays in force`
    : 'nothing is in force';
  if (newest !== undefined && !newest.valid) {
    const errors = newest.problems.filter(isError);
    const id = toShortId(newest.revision.id);
    if (newest.isHeldBack) {
      const text = `revision ${id} is ${errors[0]?.message ?? 'held back'}: ${consequence} until it is approved`;
      return { verdict: 'held_back', text };
    }
    const takenBack = errors.find(({ rule }) => rule === 'taken-back');
    if (takenBack !== undefined) {
      return {
        verdict: 'taken_back',
        text: `revision ${id} was ${takenBack.message}: ${consequence}`,
      };
    }
    const first = errors[0] ? toHeading(errors[0]) : '';
    const text = `revision ${id} has ${toCountText(errors.length, 'error')} (${first}): ${consequence}`;
    return { verdict: 'invalid', text };
  }
  if (store.failingSinceMs !== undefined) {
    const seconds = Math.max(0, Math.round((nowMs - store.failingSinceMs) / 1000));
    const age = formatDuration(seconds * 1000);
    const reason = store.lastError ?? 'no reason is known';
    const text = `the store has not been reached for ${age} (${reason}), so the newest revision is not known: ${consequence}`;
    return { verdict: 'pending', text };
  }
  if (newest === undefined && memory.error !== undefined) {
    const text = `no revision is served before it is known which revisions were taken back: ${memory.error}: ${consequence}`;
    return { verdict: 'pending', text };
  }
  // A revision can be on trial while nothing is in force: workers keep other rules than a fresh control plane knows.
  if (newest === undefined || (inForce === undefined && rollout === undefined)) {
    return {
      verdict: 'pending',
      text: `no revision has been read from the store yet: ${consequence}`,
    };
  }
  const id = `revision ${toShortId(newest.revision.id)}`;
  if (inForce?.revision.id !== newest.revision.id) {
    const text = rollout === undefined ? 'is not served yet' : toRolloutText(newest, rollout);
    // A worker that refuses the revision in force reports nothing about a newer one.
    const isRefused = workers.some(
      ({ state, gets }) => state === 'refused' && gets !== inForce?.revision.id,
    );
    const waits = isRefused ? 'refused' : 'pending';
    const verdict = rollout?.phase === 'indivisible' ? 'held_back' : waits;
    return { verdict, text: `${id} ${text}: ${consequence}` };
  }
  if (counts.inForce < counts.connected) {
    const first = workers.find(({ state }) => state === 'refused');
    const refusal = first ? `; ${first.name} reports: ${first.nacked?.text.slice(0, 500)}` : '';
    const of = `of ${toCountText(counts.connected, 'worker')}`;
    const having =
      counts.refused > 0
        ? `is refused by ${counts.refused} ${of} and in force on ${counts.inForce}`
        : `is in force on ${counts.inForce} ${of}`;
    const parts = [
      having,
      toNamedText(
        workers.filter(({ state, unused }) => state === 'pending' && !unused),
        'not answered',
      ),
      toNamedText(
        workers.filter(({ state, unused }) => state === 'pending' && unused),
        'acknowledged it without using it',
      ),
      counts.onTrial > 0 ? `${counts.onTrial} have another one on trial` : '',
    ].filter((part) => part !== '');
    const verdict = counts.refused > 0 ? 'refused' : 'pending';
    return { verdict, text: `${id} ${parts.join(', ')}${refusal}` };
  }
  const verdict = counts.connected === 0 ? 'no_workers' : 'in_force';
  return { verdict, text: `${id} ${toReach(counts.connected)}` };
}

function toMemoryProblem({
  location,
  denied,
  error,
  aside,
  isForgetful,
}: MemoryState): string | null {
  if (error !== undefined) return error;
  if (denied === undefined && aside === undefined) return null;
  const where = isForgetful
    ? 'the state directory was empty at the start, so the revisions taken back, held back or approved before are not known'
    : 'only the state directory lists the revisions taken back, held back or approved';
  return `${aside ?? `${location} rejects writes (${denied})`}: ${where}`;
}

const maxNamed = 3;

/** Such as `2 have not answered (edge, other)`; '' for none. */
function toNamedText(silent: readonly Pick<WorkerJson, 'name'>[], what: string): string {
  if (silent.length === 0) return '';
  const names = silent.slice(0, maxNamed).map(({ name }) => name);
  const more = silent.length - names.length;
  const all = [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  return `${silent.length} ${silent.length === 1 ? 'has' : 'have'} ${what} (${all})`;
}

/** The text for a revision that all `connected` workers have. */
export function toReach(connected: number): string {
  if (connected === 0) return 'is served, but no workers are connected';
  return `is in force on ${connected === 1 ? 'the 1 connected worker' : `all ${connected} connected workers`}`;
}

function isWaitedFor({ state }: WorkerJson): boolean {
  return state === 'pending' || state === 'refused';
}

export function countWorkers(
  workers: readonly Pick<WorkerJson, 'state'>[],
): Omit<StatusJson['workers'], 'gone'> {
  const having = (state: WorkerJson['state']) =>
    workers.filter((worker) => worker.state === state).length;
  return {
    connected: workers.length,
    inForce: having('in_force'),
    onTrial: having('on_trial'),
    pending: having('pending'),
    refused: having('refused'),
  };
}

function toTimeOrNull(wallMs: number | undefined): string | null {
  return wallMs === undefined ? null : toTime(wallMs);
}
