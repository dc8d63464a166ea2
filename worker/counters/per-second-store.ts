// Routes hits of per-second limits to a store of their own and all others to the main one (behaviour:
// per-second-store).
import { countInParts } from './count-in-parts.ts';
import type { CounterStore, CountRequest } from './store.ts';

export interface PerSecondStoreDeps {
  readonly main: CounterStore;
  readonly perSecond: CounterStore;
  /** Whether hits are still counted in one store when those of the same request failed in the other. */
  readonly continuesOnError: boolean;
}

/**
 * A request with hits for both stores goes to main first and then, unless that failed (or `continuesOnError`), to
 * the per-second store; concurrent requests may overtake each other between the two.
 */
export function createPerSecondStore({
  main,
  perSecond,
  continuesOnError,
}: PerSecondStoreDeps): CounterStore {
  return { count, connect, state, close };

  function count(request: CountRequest): void {
    const [first] = request.hits;
    if (request.hits.length === 1 && first !== undefined) {
      (first.unit === 'second' ? perSecond : main).count(request);
      return;
    }
    const perSecondHits = request.hits.filter((hit) => hit.unit === 'second');
    const mainHits = request.hits.filter((hit) => hit.unit !== 'second');
    const parts = [
      { hits: mainHits, count: main.count },
      { hits: perSecondHits, count: perSecond.count },
    ].filter(({ hits }) => hits.length > 0);
    countInParts(request, parts, { parallelism: 1, continuesOnError });
  }

  async function connect(signal: AbortSignal): Promise<void> {
    await perSecond.connect(signal);
    await main.connect(signal);
  }

  function state() {
    const [first, second] = [main.state(), perSecond.state()];
    return {
      healthy: first.healthy && second.healthy,
      detail: `main: ${first.detail}; per second: ${second.detail}`,
    };
  }

  async function close(graceMs: number): Promise<void> {
    await Promise.all([main.close(graceMs), perSecond.close(graceMs)]);
  }
}
