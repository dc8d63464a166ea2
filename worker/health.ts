// Whether this worker should get traffic, combined from the states of its components, which set them themselves.
// worker/listen serves it.
import type { Log } from '../shared/log.ts';

/** The components that make up the worker's health (behaviour: health-components). */
export type HealthComponent = 'store' | 'config' | 'sigterm' | 'processes';

export interface Health {
  /** True if all present components are healthy. */
  readonly healthy: boolean;
  set(component: HealthComponent, healthy: boolean): void;
  /** Calls `listener` with each change of `healthy`; the returned function unsubscribes. */
  onChange(listener: (healthy: boolean) => void): () => void;
  /** The components by name, for the debug port. */
  components(): ReadonlyMap<HealthComponent, boolean>;
}

export interface HealthOptions {
  /** HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: when false, `config` is not a component and setting it has no effect. */
  readonly requireConfig: boolean;
  /**
   * With WORKER_PROCESSES above 1 there is the component `processes`: in the primary, whether any process serves; in a
   * process, the primary's overall state.
   */
  readonly isShared?: boolean;
  /** Logs the initial state, and each change of a component, at level debug. */
  readonly log?: Log;
}

/** The name of the store for readers of the reference's log (behaviour: log-lines). */
const loggedNames: Partial<Record<HealthComponent, string>> = { store: 'redis' };

/** The initial state of each component (behaviour: health-components). */
export function createHealth({ requireConfig, isShared = false, log }: HealthOptions): Health {
  const components = new Map<HealthComponent, boolean>([['store', true]]);
  if (requireConfig) components.set('config', false);
  components.set('sigterm', true);
  if (isShared) components.set('processes', true);
  const listeners = new Set<(healthy: boolean) => void>();
  const isHealthy = () => [...components.values()].every(Boolean);
  let healthy = isHealthy();
  const logState = () => {
    const states = [...components].map(([name, state]) => `${loggedNames[name] ?? name}:${state}`);
    const map = `map[${states.sort().join(' ')}]`;
    log?.debug(`Health status of components: ${map}, all healthy: ${healthy}`);
  };
  logState();
  return {
    get healthy() {
      return healthy;
    },
    set(component, state) {
      if (!components.has(component)) return;
      // A process that is stopping never becomes healthy again.
      if (component === 'sigterm' && state) return;
      const isChange = components.get(component) !== state;
      components.set(component, state);
      const before = healthy;
      healthy = isHealthy();
      if (isChange) logState();
      if (healthy === before) return;
      for (const listener of [...listeners]) listener(healthy);
    },
    onChange(listener) {
      const own = (state: boolean) => listener(state);
      listeners.add(own);
      return () => {
        listeners.delete(own);
      };
    },
    components: () => new Map(components),
  };
}
