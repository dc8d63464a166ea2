// The steps of a rollout and the conditions that stop it, parsed from `--rollout`.
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { noSteps } from '../record/record.ts';
import { parseRolloutSteps, type RolloutStep } from '../snapshot/rollout-steps.ts';

/** The steps before the last one, which is always all workers. */
export interface RolloutPlan {
  /** At least one step, each with workers. */
  readonly steps: readonly RolloutStep[];
  /** The decision when a step has too little traffic to be judged. */
  readonly onSilence: 'proceed' | 'stop';
  /** The decision if no share of the workers can be made: the revision waits for an approval, or all workers get it. */
  readonly onIndivisible: 'wait' | 'proceed';
  /** By how many percentage points the over-limit share of a step may exceed that of the other workers. */
  readonly overLimitPoints: number;
}

/** The plan of steps on record or of --rollout, which were checked here or by another version; undefined if all workers
 * get a revision at once. */
export function planOf(steps: string): RolloutPlan | undefined {
  if (steps === '' || steps === noSteps) return undefined;
  const parsed = parseRolloutPlan(steps);
  if (parsed.ok) return parsed.plan;
  const cautious = { percent: 10, holdMs: 60_000 };
  return { steps: [cautious], onSilence: 'stop', onIndivisible: 'wait', overLimitPoints: 10 };
}

export type PlanResult =
  | { readonly ok: true; readonly plan: RolloutPlan }
  | { readonly ok: false; readonly reason: string };

const names = ['canary', 'hold', 'on-silence', 'on-indivisible', 'over-limit'];
const examples = "such as 'canary=10%,hold=60s' or '5%:30s,25%:60s,100%'";

/** Parses one step (`canary=10%,hold=60s`) or several (`5%:30s,25%:60s,100%`), followed by any of
 * `on-silence=proceed|stop` (default: proceed), `on-indivisible=wait|proceed` (default: wait) and `over-limit=<points>`
 * (default: 10). */
export function parseRolloutPlan(text: string): PlanResult {
  const given = new Map<string, string>();
  const listed: string[] = [];
  for (const part of text.split(',').map((each) => each.trim())) {
    const match = /^([a-z-]+)=(.*)$/.exec(part);
    if (match === null) {
      listed.push(part);
      continue;
    }
    const [, name = '', value = ''] = match;
    if (!names.includes(name)) {
      return bad(`unknown part '${toExcerpt(name)}' (one of ${names.join(', ')})`);
    }
    if (given.has(name)) return bad(`${name} is given twice`);
    given.set(name, value);
  }
  const canary = given.get('canary');
  const hold = given.get('hold');
  if (canary !== undefined) {
    if (listed.length > 0) return bad('give either canary=... or a list of steps');
    if (!canary.endsWith('%')) {
      return bad(`canary=${toExcerpt(canary)} is not a share of the workers, such as 'canary=10%'`);
    }
    listed.push(hold === undefined ? canary : `${canary}:${hold}`);
  } else if (hold !== undefined) {
    return bad("hold=... requires canary=...; a step has its own, such as '5%:30s'");
  }
  const parsed = parseRolloutSteps(listed.join(','));
  if (!parsed.ok) return parsed;
  const steps = parsed.steps.slice(0, -1);
  if (steps.length === 0) {
    return bad(`it does not begin with a share of the workers, ${examples}`);
  }
  if (listed.at(-1)?.startsWith('100%:')) return bad("nothing is held after '100%'");
  return readRest(given, steps);
}

function readRest(given: ReadonlyMap<string, string>, steps: readonly RolloutStep[]): PlanResult {
  const onSilence = given.get('on-silence') ?? 'proceed';
  if (onSilence !== 'proceed' && onSilence !== 'stop') {
    return bad(`on-silence is proceed or stop, not '${toExcerpt(onSilence)}'`);
  }
  const onIndivisible = given.get('on-indivisible') ?? 'wait';
  if (onIndivisible !== 'wait' && onIndivisible !== 'proceed') {
    return bad(`on-indivisible is wait or proceed, not '${toExcerpt(onIndivisible)}'`);
  }
  const points = given.get('over-limit') ?? '10';
  const overLimitPoints = Number(points);
  if (!/^\d+$/.test(points) || overLimitPoints < 1 || overLimitPoints > 100) {
    return bad(`over-limit is a number of points from 1 to 100, not '${toExcerpt(points)}'`);
  }
  return { ok: true, plan: { steps, onSilence, onIndivisible, overLimitPoints } };
}

function bad(reason: string): PlanResult {
  return { ok: false, reason };
}
