// What the control plane that leads does with a rollout at each look: gives the revision to the workers of a step,
// waits until they have it, watches them, and goes on to the next one or takes it back. What it decides goes
// on record (rollout.ts), from which everybody takes it, this control plane too.
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import { toShortId } from '../store/revision.ts';
import type { FleetView } from './fleet-view.ts';
import type { RolloutPlan } from './plan.ts';
import { isWithin, widen } from './pools.ts';
import type { RolloutRecord } from './record.ts';
import { enter, type Running } from './running.ts';

export interface Steps {
  /** One look at the workers. At most one change of the record is proposed. */
  watch(now: Running): void;
}

export interface StepsDeps {
  readonly plan: RolloutPlan;
  readonly fleet: FleetView;
  /** Changes the record, and calls `onWritten` when it has. */
  readonly propose: (now: Running, change: Partial<RolloutRecord>, onWritten?: () => void) => void;
  readonly takeBack: (now: Running, reason: string) => void;
  readonly pause: (now: Running, reason: string) => void;
  readonly log: Log;
  readonly clock: Clock;
}

export function createSteps(deps: StepsDeps): Steps {
  const { plan, fleet, propose, takeBack, pause, log, clock } = deps;

  function watch(now: Running): void {
    if (now.phase === 'gathering') {
      now.text = fleet.unknown ?? 'workers are still connecting';
      if (fleet.unknown !== undefined || !fleet.isGathered(now.gatherSinceMs)) return;
      if (now.limits.length === 0) {
        take(now, now.step);
        return;
      }
      enter(now, 'spreading', clock);
    }
    const having = fleet.chosen(now.limits);
    if (having.length === 0 && fleet.unknown === undefined) {
      pause(now, 'the workers of this step have left');
      return;
    }
    if (shrinkToShare(now)) return;
    const waiting = having.filter(({ state }) => state !== 'in_force');
    if (waiting[0] !== undefined || (fleet.unknown !== undefined && now.phase === 'spreading')) {
      enter(now, 'spreading', clock);
      now.text =
        fleet.unknown ??
        `waits for ${toCountText(waiting.length, 'worker')}, such as ${waiting[0]?.name}`;
      return;
    }
    if (now.phase === 'spreading') {
      fleet.startCounting();
      enter(now, 'holding', clock);
    }
    hold(now);
  }

  function hold(now: Running): void {
    const holdMs = now.pools.holdMsOf(now.step);
    const judgement = fleet.judge(now.limits, plan.overLimitPoints, now.pools);
    if (judgement.kind === 'bad') {
      takeBack(now, judgement.text);
      return;
    }
    const leftMs = now.phaseSinceMs + holdMs - clock.monotonicMs();
    now.text = `is watched for another ${formatDuration(Math.max(0, Math.ceil(leftMs / 1000)) * 1000)}`;
    if (judgement.kind === 'silent') now.text += ` (${judgement.text})`;
    if (leftMs > 0) return;
    if (fleet.unknown !== undefined) {
      now.text = fleet.unknown;
    } else if (judgement.kind === 'good') {
      advance(now, 'did as well as the others');
    } else if (now.phase === 'holding') {
      enter(now, 'silent', clock);
    } else if (plan.onSilence === 'proceed') {
      advance(now, `could not be judged: ${judgement.text}`);
    } else {
      pause(now, `too little traffic to judge: ${judgement.text}`);
    }
  }

  function advance(now: Running, why: string): void {
    log.notice(`Rollout of revision ${toShortId(now.revision)}: step ${now.step + 1} ${why}`);
    take(now, now.step + 1);
  }

  /** Gives it to the workers of this step, or of the next one that has any; after the last one to all. */
  function take(now: Running, from: number): void {
    const { pools } = now;
    const workers = fleet.given();
    now.text = '';
    for (let step = from; step < pools.stepCount; step++) {
      const limits = widen(pools.limitsAt(step, workers), now.limits);
      const { length } = workers.filter((worker) => isWithin(limits, worker));
      if (length === 0) continue;
      if (length === workers.length) break;
      propose(now, { outcome: 'running', step, limits, reason: '' }, () => {
        log.notice(
          `Rollout of revision ${toShortId(now.revision)}: step ${step + 1} of ${pools.stepCount + 1}, ${length} of ${toCountText(workers.length, 'worker')}`,
        );
      });
      return;
    }
    const isDone = from >= pools.stepCount;
    const why = isDone ? 'all steps are done' : 'there are no workers to compare with';
    log.notice(`Rollout of revision ${toShortId(now.revision)}: ${why}, so everybody gets it`);
    propose(now, { outcome: 'in_force', reason: '' });
  }

  /** Workers that connect later may be on this side, but must not exceed the share. */
  function shrinkToShare(now: Running): boolean {
    if (fleet.unknown !== undefined) return false;
    const workers = fleet.given();
    const share = now.pools.limitsAt(now.step, workers);
    const limits = now.limits.map((limit, pool) => {
      const smaller = share[pool] ?? limit;
      return smaller < 0 ? limit : Math.min(limit, smaller);
    });
    const losesOne = workers.some(
      (worker) => isWithin(now.limits, worker) && !isWithin(limits, worker),
    );
    if (losesOne) propose(now, { limits });
    return losesOne;
  }

  return { watch };
}
