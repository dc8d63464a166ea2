// The result of one hit on a limiter's counter, in its turn (behaviour: limiter-answers).
import type { LimiterCounter } from '../../shared/counting/limiter.ts';
import type { Hit } from './store.ts';

/** `hits`: the requested number; 0 where the hit only looks. Sets the hit's result. */
export function takeHit(counter: LimiterCounter, hit: Hit, hits: number): void {
  const { limit, limiter } = hit;
  hit.windowLeftMs = counter.windowLeftMs;
  if (hit.refund) {
    counter.giveBack(hits);
    hit.after = limit - counter.room;
    hit.resetSeconds = toSeconds(counter.msUntilFree());
    hit.closedSeconds = 0;
    return;
  }
  const isOver = counter.take(hits);
  const { room } = counter;
  const isCounted = !isOver || limiter?.countsOver === true;
  hit.after = limit - room + (isCounted ? 0 : hits);
  hit.resetSeconds = toSeconds(isOver ? counter.msUntil(hits) : counter.msUntilFree());
  // Where hits over the limit are counted, every hit has to reach the store.
  hit.closedSeconds = room > 0 || isCounted ? 0 : Math.floor(counter.msUntil(1) / 1000);
}

/** At least 1: callers are never asked to retry at once. */
function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
