// The steps of a rollout, and what stops it, parsed from `--rollout`.
import { parseDuration } from '../../shared/duration.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** Steps before the last one, which is always all workers. */
export interface RolloutPlan {
  readonly steps: readonly RolloutStep[];
  /** What happens when a step has too little traffic to be judged. */
  readonly onSilence: 'proceed' | 'stop';
  /** By how many points the over-limit share of a step may exceed that of the other workers. */
  readonly overLimitPoints: number;
}

export interface RolloutStep {
  /** Percent of the connected workers; above 0, below 100. */
  readonly percent: number;
  readonly holdMs: number;
}

export type PlanResult =
  | { readonly ok: true; readonly plan: RolloutPlan }
  | { readonly ok: false; readonly reason: string };

const defaultHold = '60s';
const maxSteps = 20;
const maxHoldMs = 24 * 3_600_000;
const examples = "such as 'canary=10%,hold=60s' or '5%:30s,25%:60s,100%'";

/**
 * `canary=10%,hold=60s` is one step, `5%:30s,25%:60s,100%` several; either may be followed by
 * `on-silence=proceed|stop` (default: proceed) and `over-limit=<points>` (default: 10). A step's hold
 * defaults to 60s.
 */
export function parseRolloutPlan(text: string): PlanResult {
  const given = new Map<string, string>();
  const steps: RolloutStep[] = [];
  let isWhole = false;
  for (const part of text.split(',').map((each) => each.trim())) {
    const [, name, value] = /^([a-z-]+)=(.*)$/.exec(part) ?? [];
    if (name !== undefined && value !== undefined) {
      if (given.has(name)) return bad(`${toExcerpt(name)} is given twice`);
      given.set(name, value);
      continue;
    }
    if (isWhole) return bad("nothing comes after '100%'");
    if (part === '100%') {
      isWhole = true;
      continue;
    }
    const step = readStep(part);
    if (typeof step === 'string') return bad(step);
    steps.push(step);
  }
  const canary = given.get('canary');
  const hold = given.get('hold');
  if (canary !== undefined) {
    if (steps.length > 0 || isWhole) return bad('give either canary=... or a list of steps');
    const step = readStep(`${canary}:${hold ?? defaultHold}`);
    if (typeof step === 'string') return bad(step);
    steps.push(step);
  } else if (hold !== undefined) {
    return bad("hold=... goes with canary=...; a step has its own, such as '5%:30s'");
  }
  if (steps.length === 0) return bad(`there is no step before all workers, ${examples}`);
  if (steps.length > maxSteps) return bad(`more than ${maxSteps} steps`);
  const isRising = steps.every(({ percent }, index) => percent > (steps[index - 1]?.percent ?? 0));
  if (!isRising) return bad('each step has to be larger than the one before');
  return readRest(given, steps);
}

function readRest(given: ReadonlyMap<string, string>, steps: readonly RolloutStep[]): PlanResult {
  for (const name of given.keys()) {
    if (!['canary', 'hold', 'on-silence', 'over-limit'].includes(name)) {
      return bad(`unknown part '${toExcerpt(name)}' (one of canary, hold, on-silence, over-limit)`);
    }
  }
  const onSilence = given.get('on-silence') ?? 'proceed';
  if (onSilence !== 'proceed' && onSilence !== 'stop') {
    return bad(`on-silence is proceed or stop, not '${toExcerpt(onSilence)}'`);
  }
  const points = given.get('over-limit') ?? '10';
  const overLimitPoints = Number(points);
  if (!/^\d{1,3}$/.test(points) || overLimitPoints < 1 || overLimitPoints > 100) {
    return bad(`over-limit is a number of points from 1 to 100, not '${toExcerpt(points)}'`);
  }
  return { ok: true, plan: { steps, onSilence, overLimitPoints } };
}

/** The reason for an invalid text. */
function readStep(text: string): RolloutStep | string {
  const [, percentText = '', holdText = defaultHold] =
    /^(\d{1,2}(?:\.\d{1,3})?)%(?::(.+))?$/.exec(text) ?? [];
  const percent = Number(percentText);
  if (percentText === '' || percent === 0) return `'${toExcerpt(text)}' is no step, ${examples}`;
  const hold = parseDuration(holdText);
  if (!hold.ok) return `the hold '${toExcerpt(holdText)}': ${hold.reason}`;
  if (hold.ms < 1_000 || hold.ms > maxHoldMs)
    return `the hold '${toExcerpt(holdText)}' is not 1s to 24h`;
  return { percent, holdMs: hold.ms };
}

function bad(reason: string): PlanResult {
  return { ok: false, reason };
}
