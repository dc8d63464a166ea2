// The status of a fleet, from what each of its control planes reports; also asks the others for theirs. Each makes its
// own status (status-report.ts) with the facts for its notices; here verdict.ts combines all of them into one verdict,
// the figures are added, and notices.ts makes sentences of the facts.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { toCountText } from '../../../shared/count-text.ts';
import type { ExchangeAsk } from '../record/peers/exchange.ts';
import type { PeerAnswer, PeerWorkers } from '../record/peers/peers.ts';
import { findDisagreements, joinAgreements } from './differing-workers.ts';
import { nameTogether, toFleet } from './fleet-json.ts';
import { sumFields } from './joined.ts';
import { isOfClocks, toNotices } from './notices.ts';
import {
  judgeShrunk,
  listInstances,
  maxWaitingFor,
  type OwnStatus,
  type StatusJson,
  statusJson,
} from './status-report.ts';
import { toTraffic } from './traffic-json.ts';
import { judgeAnswers, type StatusAnswer } from './verdict.ts';

/** The name of this control plane in messages. */
const self = 'this control plane';

export interface StatusQuestion {
  readonly revision?: string | undefined;
  /** Whether to include the individual workers, as the peers have. */
  readonly workers?: boolean;
}

/** Workers are those of all control planes; the store and the revision in force are this one's. If one does not answer,
 * the verdict is `not_known`, unless each of its workers is connected to another one now (behaviour:
 * workers-of-a-lost-peer). `peers` is undefined if no others are part of the answer. */
export function toStatus(
  own: OwnStatus,
  peers: readonly PeerAnswer<StatusJson>[] | undefined,
  { revision, workers: includesFleet = false }: StatusQuestion = {},
): StatusJson {
  const known = [own, ...(peers ?? []).flatMap(({ value }) => value ?? [])];
  const present = new Set(known.flatMap((status) => listInstances(status) ?? []));
  const planes: readonly Plane[] = [
    { url: self, status: own },
    ...(peers ?? []).map(({ url, ...peer }) =>
      peer.value === undefined
        ? { url, ...toSilent({ url, ...peer }, present) }
        : { url, status: peer.value },
    ),
  ];
  const answers = planes.filter(({ isMissed }) => isMissed !== false);
  const judged = peers === undefined ? own : judgeAnswers(answers, { revision, minWorkers: 0 });
  const agreements = joinAgreements(known.flatMap((each) => each.agreements));
  const hasFleets = includesFleet || peers === undefined;
  const fleet = hasFleets ? toFleet(known.flatMap((each) => each.fleet ?? [])) : null;
  const traffic = toTraffic(known.flatMap((status) => status.traffic ?? []));
  const unenforced = known.flatMap((status) => status.unenforced);
  const disagreements = findDisagreements(agreements);
  const counts = sumFields(
    known.map((status) => status.workers),
    ['connected', 'inForce', 'onTrial', 'pending', 'refused', 'gone'],
  );
  const workers = fleet === null ? counts : { ...counts, gone: fleet.gone.length };
  const gone = known
    .flatMap(({ goneLately = [] }) => goneLately)
    .filter(({ instance }) => peers === undefined || (instance !== null && !present.has(instance)));
  const { verdict, text } =
    judged.verdict === 'no_such_revision'
      ? { ...judged, verdict: own.verdict }
      : judgeShrunk({ ...judged, verdict: judged.verdict }, workers.connected, gone.length);
  const { instances: _, facts: __, goneLately: ___, ...status } = own;
  return {
    ...status,
    notices: toNotices(
      known.map(({ facts = [] }) => facts),
      {
        workers: { ...workers, reporting: traffic?.workers ?? 0 },
        lastGoneAt: fleet?.gone[0]?.at,
        disagreements,
        unenforced,
        store: own.store,
        stale: own.stale,
        others: known.flatMap(({ notices = [] }) => notices.filter(isOfClocks)).slice(0, 1),
      },
    ),
    verdict,
    text,
    asked: known.map(({ asked }) => asked).find(isFound) ?? own.asked,
    rollout: findLeading(known),
    workers,
    fleet: includesFleet ? fleet : null,
    traffic,
    setAside: mergeSetAside(planes),
    waitingFor: nameTogether(known.flatMap(({ waitingFor }) => waitingFor)).slice(0, maxWaitingFor),
    unenforced,
    agreements,
    disagreements,
    controlPlanes: (peers === undefined ? [] : planes).map(({ url, status, error }) => ({
      url: url === self ? 'this' : url,
      connected: status?.workers.connected ?? null,
      inForce: status?.inForce?.id ?? null,
      trial: status?.rollout?.revision ?? null,
      memoryProblem: status?.memory.problem ?? null,
      error: error ?? null,
    })),
  };
}

/** The paths of peers include their addresses: state directories often have the same path. */
function mergeSetAside(planes: readonly Plane[]): string[] {
  return planes.flatMap(({ url, status }) =>
    (status?.setAside ?? []).map((path) => (url === self ? path : `${path} at ${url}`)),
  );
}

/** The control plane that leads a rollout knows the workers of all. */
function findLeading(known: readonly StatusJson[]): StatusJson['rollout'] {
  const rollouts = known.flatMap(({ rollout }) => rollout ?? []);
  return rollouts.find(({ leader }) => leader?.isThis) ?? rollouts[0] ?? null;
}

/** `isMissed`: whether one that does not answer may have workers that are connected to no other control plane. */
type Plane = StatusAnswer & { readonly isMissed?: boolean };

/** The advice for a doubt that waiting does not resolve. */
const whenLost = 'if it is gone for good, remove it from --peers';

function toSilent(
  { url, error, last }: { url: string; error: string; last: PeerWorkers | undefined },
  present: ReadonlySet<string | null>,
): { readonly error: string; readonly isMissed: boolean } {
  const text = `peer ${url} does not answer (${error})`;
  const missing = (whom: string) => ({
    error: `${text}, so it is unknown for ${whom}; ${whenLost}`,
    isMissed: true,
  });
  if (last === undefined) return missing('its workers');
  // It is unknown whether a worker without an instance is the same one.
  const missed = last.filter((instance) => instance === null || !present.has(instance)).length;
  const had = toCountText(last.length, 'worker');
  if (missed === 0) {
    const where =
      last.length === 0 ? 'it had no workers' : `its ${had} moved to other control planes`;
    return { error: `${text}; ${where}; ${whenLost}`, isMissed: false };
  }
  return missing(missed === last.length ? had : `${missed} of its ${had}`);
}

function isFound(asked: StatusJson['asked']): boolean {
  return asked?.place === 'newest' || asked?.place === 'superseded';
}

/** A deployment replaces all workers within minutes. */
const workersPauseMs = 10_000;

/** Asks the others for their workers, at once and then periodically; call the result to stop. When one is lost, no
 * earlier status request may have asked for them. */
export function watchWorkers(
  ask: ExchangeAsk,
  clock: Clock,
  onAnswers: (answers: readonly PeerAnswer<StatusJson>[]) => void,
): () => void {
  const watch = async () =>
    onAnswers(await ask({ method: 'GET', path: '/status' }, statusJson, listInstances));
  void watch();
  return repeatAfter(clock, workersPauseMs, watch);
}
