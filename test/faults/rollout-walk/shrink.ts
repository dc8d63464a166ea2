// Removes from a walk the events without which it still fails.
import type { Walk, WalkEvent } from './draw-walk.ts';
import { runWalk, type WalkResult } from './run-walk.ts';

const maxTries = 120;

/** Fewer events that still cause a violation, possibly another one. */
export async function shrink(
  walk: Walk,
): Promise<{ readonly walk: Walk; readonly result: WalkResult }> {
  let best = walk;
  let result = await runWalk(walk);
  if (result.finding === undefined) return { walk, result };
  let tries = 0;
  const attempt = async (events: readonly WalkEvent[]): Promise<boolean> => {
    if (tries++ >= maxTries) return false;
    const given = await runWalk({ ...best, events });
    if (given.finding === undefined || kindOf(given) !== kindOf(result)) return false;
    best = { ...best, events };
    result = given;
    return true;
  };
  await attempt(best.events.filter(({ second }) => second <= result.seconds));
  for (let size = Math.ceil(best.events.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < best.events.length; ) {
      const left = best.events.filter((_, index) => index < from || index >= from + size);
      if (!(await attempt(left))) from += size;
    }
  }
  return { walk: best, result };
}

/** Without the figures. */
function kindOf({ finding = '' }: WalkResult): string {
  return finding
    .replace(/\d+/g, '')
    .replace(/\b[abc]\b/g, '')
    .slice(0, 40);
}
