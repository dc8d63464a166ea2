// Sends the hits of per-second limits to a store of their own and all others to the main one
// (specification, key-value store backend; reference-behaviour 2.3). Counts nothing itself.
import type { AppError } from '../../shared/errors.ts';
import type { CounterStore, CountMode, CountRequest, Hit } from './store.ts';

export interface PerSecondStoreDeps {
  readonly main: CounterStore;
  readonly perSecond: CounterStore;
}

/**
 * A request with hits for both stores goes to main first and then, unless that failed, to the
 * per-second store; requests that come at once may overtake each other between the two. With `add-unless-over` both are looked at before either counts; another request
 * can count in between, from this worker too, so that a counter which would have stood still may
 * then take a few hits more.
 */
export function createPerSecondStore({ main, perSecond }: PerSecondStoreDeps): CounterStore {
  return { count, connect, state, close };

  function count(request: CountRequest): void {
    const perSecondHits = request.hits.filter((hit) => hit.unit === 'second');
    if (perSecondHits.length === 0) {
      main.count(request);
    } else if (perSecondHits.length === request.hits.length) {
      perSecond.count(request);
    } else {
      const mainHits = request.hits.filter((hit) => hit.unit !== 'second');
      if (request.mode === 'add-unless-over') countUnlessOver(request, mainHits, perSecondHits);
      else countBoth(request, mainHits, perSecondHits, request.mode, request.settle.bind(request));
    }
  }

  function countBoth(
    request: CountRequest,
    mainHits: readonly Hit[],
    perSecondHits: readonly Hit[],
    mode: CountMode,
    done: (error: AppError | undefined) => void,
  ): void {
    const second = toPart(request, perSecondHits, mode, done);
    const first = toPart(request, mainHits, mode, (error) => {
      if (error !== undefined) done(error);
      else perSecond.count(second);
    });
    main.count(first);
  }

  function countUnlessOver(
    request: CountRequest,
    mainHits: readonly Hit[],
    perSecondHits: readonly Hit[],
  ): void {
    const looks = request.hits.filter((hit) => !hit.refund).map((hit) => ({ ...hit }));
    const isPerSecond = (hit: Hit) => hit.unit === 'second';
    countLooks(
      looks.filter((hit) => !isPerSecond(hit)),
      looks.filter(isPerSecond),
    );

    function countLooks(mainLooks: readonly Hit[], perSecondLooks: readonly Hit[]): void {
      const decide = (error: AppError | undefined) => {
        if (error !== undefined) request.settle(error);
        else countDecided();
      };
      if (mainLooks.length === 0 || perSecondLooks.length === 0) {
        const store = mainLooks.length === 0 ? perSecond : main;
        store.count(toPart(request, looks, 'look', decide));
      } else {
        countBoth(request, mainLooks, perSecondLooks, 'look', decide);
      }
    }

    function countDecided(): void {
      const overs = looks.map((look) => look.after + look.hits > look.limit);
      const anyOver = overs.includes(true);
      const twins = new Map<Hit, Hit>();
      let place = 0;
      for (const hit of request.hits) {
        const standsStill = !hit.refund && anyOver && !overs[place];
        if (!hit.refund) place++;
        twins.set(hit, standsStill ? { ...hit, hits: 0, exactHits: undefined } : { ...hit });
      }
      const toTwins = (hits: readonly Hit[]) => hits.map((hit) => twins.get(hit) ?? hit);
      countBoth(request, toTwins(mainHits), toTwins(perSecondHits), 'add', (error) => {
        for (const [hit, twin] of twins) hit.after = twin.after;
        request.settle(error);
      });
    }
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

/** One store's part of a request; whether the caller has left is the whole request's affair. */
function toPart(
  whole: CountRequest,
  hits: readonly Hit[],
  mode: CountMode,
  settle: (error: AppError | undefined) => void,
): CountRequest {
  return {
    hits,
    mode,
    deadlineMs: whole.deadlineMs,
    get cancelled() {
      return whole.cancelled;
    },
    set cancelled(value) {
      whole.cancelled = value;
    },
    settle,
  };
}
