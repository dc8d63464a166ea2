// The breakers of all servers of one store: counted for the statistics, listed for the debug port, with a
// callback when all are closed again.
import type { Clock } from '../../../shared/clock.ts';
import type { Metrics } from '../../metrics.ts';
import { type Breaker, type BreakerDeps, createBreaker } from './breaker.ts';

export interface Outages {
  /** Whether all breakers are closed. */
  readonly areOver: boolean;
  addServer(name: string, onChange: BreakerDeps['onChange']): ServerBreaker;
  /** The servers whose breaker is not closed, one text each, for the debug port. */
  describe(): readonly string[];
}

export interface ServerBreaker extends Breaker {
  /** Removes the breaker of a server that is no longer used. Idempotent. */
  remove(): void;
}

export interface OutagesDeps {
  /** Prefix of the statistics' names, such as `ratelimit.store`. */
  readonly metricPrefix: string;
  readonly metrics: Pick<Metrics, 'counter' | 'gauge'>;
  readonly clock: Clock;
  /** Called when a breaker was closed or removed, and now all are closed. */
  readonly onOver: () => void;
}

export function createOutages({ metricPrefix, metrics, clock, onOver }: OutagesDeps): Outages {
  const openGauge = metrics.gauge(`${metricPrefix}.breaker.open`);
  const opened = metrics.counter(`${metricPrefix}.breaker.opened`);
  const closed = metrics.counter(`${metricPrefix}.breaker.closed`);
  const breakers = new Set<Breaker>();
  const areOver = () => [...breakers].every(({ state }) => state === 'closed');
  const countOpen = () => {
    openGauge.set([...breakers].filter(({ state }) => state === 'open').length);
  };
  return {
    get areOver() {
      return areOver();
    },
    addServer(name, onChange) {
      const breaker = createBreaker({
        name,
        clock,
        onChange(state, before) {
          if (state === 'open') opened.add(1);
          if (state === 'closed') closed.add(1);
          countOpen();
          onChange(state, before);
          if (state === 'closed' && areOver()) onOver();
        },
      });
      breakers.add(breaker);
      return Object.assign(breaker, {
        remove() {
          if (!breakers.delete(breaker)) return;
          countOpen();
          if (breaker.state !== 'closed' && areOver()) onOver();
        },
      });
    },
    describe: () => [...breakers].flatMap((breaker) => breaker.describe() ?? []),
  };
}
