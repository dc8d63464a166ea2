// Counts the connections of one store over all its servers, for metrics and health.
import type { Clock } from '../../../shared/clock.ts';
import type { Counter, Gauge } from '../../metrics.ts';

export interface ConnectionTotals {
  readonly active: number;
  /** Since when there is a connection, or none. */
  readonly since: Date;
  opened(): void;
  ended(byUs: boolean): void;
  /** After this, the end of a connection does not affect health. */
  close(): void;
}

export interface ConnectionTotalsDeps {
  readonly clock: Clock;
  /** `<pool>.cx_active`, `.cx_total` and `.cx_local_close` (behaviour: statistic-names). */
  readonly connections: {
    readonly active: Gauge;
    readonly total: Counter;
    readonly localClose: Counter;
  };
  /**
   * Called with true for the first connection, also after an outage, and with false when the last one ends
   * (KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION; behaviour: health-components).
   */
  readonly onHealthChange: (healthy: boolean) => void;
}

export function createConnectionTotals(deps: ConnectionTotalsDeps): ConnectionTotals {
  const { clock, connections } = deps;
  let active = 0;
  let since = new Date(clock.wallMs());
  let closed = false;

  function changed(): void {
    if (closed) return;
    since = new Date(clock.wallMs());
    deps.onHealthChange(active > 0);
  }

  return {
    get active() {
      return active;
    },
    get since() {
      return since;
    },
    opened() {
      active++;
      connections.total.add(1);
      connections.active.set(active);
      if (active === 1) changed();
    },
    ended(byUs) {
      active--;
      connections.active.set(active);
      if (byUs) connections.localClose.add(1);
      if (active === 0) changed();
    },
    close() {
      closed = true;
    },
  };
}
