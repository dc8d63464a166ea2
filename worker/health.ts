// (placeholder, replaced by its owner)
/** The parts whose state makes up the worker's health (specification, States and transitions). */
export type HealthComponent = 'store' | 'config' | 'sigterm';

export interface Health {
  /** All present components are healthy. */
  readonly healthy: boolean;
  set(component: HealthComponent, healthy: boolean): void;
  /** Calls `listener` with each change of `healthy`; the returned function stops that. */
  onChange(listener: (healthy: boolean) => void): () => void;
  /** By name, for the debug port. */
  components(): ReadonlyMap<HealthComponent, boolean>;
}
