// The status of a fleet with several control planes, from the status of each. Pure.
import { toCountText } from '../../shared/count-text.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { findDisagreements, mergeAgreements } from './agreement-report.ts';
import { mergeFleets } from './fleet-json.ts';
import { maxWaitingFor, type StatusJson } from './status-report.ts';
import { mergeTraffic } from './traffic-json.ts';
import { type Answer, judgeAnswers } from './verdict.ts';
import { nameTogether } from './worker-json.ts';

/** In texts. */
const self = 'this control plane';

/** Workers are those of all control planes; store and revision in force are this one's. Without an answer
 * of one, the verdict is `not_known`, never `in_force`. */
export function mergeStatus(
  own: StatusJson,
  peers: readonly PeerAnswer<StatusJson>[],
  revision: string | undefined,
): StatusJson {
  const answers: Answer[] = [
    { url: self, status: own },
    ...peers.map((peer) =>
      peer.value === undefined
        ? { url: peer.url, error: toUnknown(peer.url, peer.error, peer.last) }
        : { url: peer.url, status: peer.value },
    ),
  ];
  const { verdict, text } = judgeAnswers(answers, { revision, minWorkers: 0 });
  const known = answers.flatMap(({ status }) => status ?? []);
  const count = (state: keyof StatusJson['workers']) =>
    known.reduce((sum, { workers }) => sum + workers[state], 0);
  const agreements = mergeAgreements(
    known.flatMap((each) => each.agreements ?? each.disagreements),
  );
  const fleet = own.fleet === null ? null : mergeFleets(known.flatMap(({ fleet }) => fleet ?? []));
  return {
    ...own,
    verdict: verdict === 'no_such_revision' ? own.verdict : verdict,
    text,
    asked: known.map(({ asked }) => asked).find(isFound) ?? own.asked,
    rollout: findLeading(known),
    workers: {
      connected: count('connected'),
      inForce: count('inForce'),
      onTrial: count('onTrial'),
      pending: count('pending'),
      refused: count('refused'),
      gone: fleet === null ? count('gone') : fleet.gone.length,
    },
    fleet,
    traffic: mergeTraffic(known.map(({ traffic }) => traffic)),
    waitingFor: nameTogether(known.flatMap(({ waitingFor }) => waitingFor)).slice(0, maxWaitingFor),
    unenforced: known.flatMap(({ unenforced }) => unenforced),
    agreements,
    disagreements: findDisagreements(agreements),
    controlPlanes: answers.map(({ url, status, error }) => ({
      url: url === self ? 'this' : url,
      connected: status?.workers.connected ?? null,
      inForce: status?.inForce?.id ?? null,
      trial: status?.rollout?.revision ?? null,
      memoryProblem: status?.memory.problem ?? null,
      error: error ?? null,
    })),
  };
}

/** The control plane that leads a rollout knows the workers of all. */
function findLeading(known: readonly StatusJson[]): StatusJson['rollout'] {
  const rollouts = known.flatMap(({ rollout }) => rollout ?? []);
  return rollouts.find(({ leader }) => leader?.isThis) ?? rollouts[0] ?? null;
}

function toUnknown(url: string, reason: string, last: number | undefined): string {
  const whom = last === undefined ? 'its workers' : toCountText(last, 'worker');
  return `peer ${url} gives no answer (${reason}), so it is unknown for ${whom}`;
}

function isFound(asked: StatusJson['asked']): boolean {
  return asked?.place === 'newest' || asked?.place === 'superseded';
}
