// The steps in which a revision reaches workers, as text: of `--rollout`, and of a group in node-groups.yaml.
import { parseDuration } from '../../../shared/duration.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';

export interface RolloutStep {
  /** Percentage of the workers; 100 in the last step. */
  readonly percent: number;
  readonly holdMs: number;
}

/** Returns the steps, the last of which is always all workers, or the reason why the text is invalid. */
export type StepsResult =
  | { readonly ok: true; readonly steps: readonly RolloutStep[] }
  | { readonly ok: false; readonly reason: string };

const defaultHold = '60s';
const maxSteps = 20;
const maxHoldMs = 24 * 3_600_000;

/** Parses `5%:30s,25%:60s,100%:10m`. A hold defaults to 60s, and `100%` can be omitted. Each step must be larger than
 * the previous one. */
export function parseRolloutSteps(text: string): StepsResult {
  const parts = text.split(',').map((each) => each.trim());
  if (!parts.at(-1)?.startsWith('100%')) parts.push('100%');
  if (parts.length > maxSteps + 1) return bad(`more than ${maxSteps} steps`);
  const steps: RolloutStep[] = [];
  let before = 0;
  for (const part of parts) {
    const step = readStep(part);
    if (typeof step === 'string') return bad(step);
    if (before === 100) return bad("nothing comes after '100%'");
    if (step.percent <= before) return bad('each step has to be larger than the one before');
    before = step.percent;
    steps.push(step);
  }
  return { ok: true, steps };
}

/** The reason why the text is invalid. */
function readStep(text: string): RolloutStep | string {
  const [, percentText, holdText = defaultHold] =
    /^(100|\d{1,2}(?:\.\d{1,3})?)%(?::(.+))?$/.exec(text) ?? [];
  if (percentText === undefined) return `'${toExcerpt(text)}' is not a step, such as '5%:30s'`;
  if (Number(percentText) === 0) {
    return `'${toExcerpt(text)}' gives it to no worker: leave it out, since node groups take their steps one after the other, in the order of their file`;
  }
  const hold = parseDuration(holdText);
  if (!hold.ok) return `the hold '${toExcerpt(holdText)}': ${hold.reason}`;
  if (hold.ms < 1_000 || hold.ms > maxHoldMs)
    return `the hold '${toExcerpt(holdText)}' is not 1s to 24h`;
  return { percent: Number(percentText), holdMs: hold.ms };
}

function bad(reason: string): StepsResult {
  return { ok: false, reason };
}
