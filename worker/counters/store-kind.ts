// What a kind of counter store declares: its capabilities, its checks, and how it is made from the settings.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Setting } from '../../shared/settings/setting.ts';
import type { Health } from '../health.ts';
import type { Metrics } from '../metrics.ts';
import type { SpanAttributes } from '../tracing/tracer.ts';
import type { AddressSettings, CountingReading, CountingSettings } from './counting-settings.ts';
import type { Outages } from './failure/outages.ts';
import type { CounterStore, Hit } from './store.ts';

export interface StoreKind {
  /** Its words in BACKEND_TYPE, the one for documents first. */
  readonly words: readonly [string, ...string[]];
  /**
   * Whether it counts limits of every algorithm, not only fixed windows. Servers need scripts for it (behaviour:
   * limiter-scripts).
   */
  readonly limiters: boolean;
  /**
   * Whether hits are in their counters when it answers. Otherwise a lease would be inexact, and counting cannot stop
   * over the limit (behaviour: over-limit-stops-counting).
   */
  readonly countsBeforeAnswer: boolean;
  /** Whether workers, and processes of one worker, count together. */
  readonly isShared: boolean;
  /** Whether it uses servers, which may be unreachable. */
  readonly needsServer: boolean;
  /** Human-readable sentences about mistakes in its settings that prevent its use. */
  check(reading: CountingReading): string[];
  /** Human-readable sentences about settings without effect. */
  warn(reading: CountingReading): string[];
  /** The settings of files that its TLS needs, including those that were not given. */
  tlsFiles(reading: CountingReading): Setting<string>[];
  /** Whether its servers accept neither long counter keys nor blanks in them. */
  readonly acceptsShortKeysOnly: boolean;
  /**
   * Whether its servers receive every counter key unchanged, however long; otherwise the SHA-256 of those above 1,024
   * bytes.
   */
  storesLongKeys(settings: AddressSettings): boolean;
  /** One line for each of its settings that workers counting together must have in common (agreement.ts). */
  agreementParts(settings: AddressSettings): string[];
  /** The description of a decision's wait for it in traces; undefined for no span. */
  describeCall(hits: readonly Hit[], settings: CountingSettings): StoreCall | undefined;
  /** Loads its code only now: each store costs memory and time at the start. */
  create(settings: CountingSettings, deps: StoreKindDeps): Promise<CounterStore>;
}

export interface StoreKindDeps {
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** Creates the breakers of its servers; the prefix is that of their statistics. */
  addOutages(metricPrefix: string): Outages;
}

/** A span of a call to the store. */
export interface StoreCall {
  readonly scope: string;
  readonly name: string;
  readonly attributes: SpanAttributes;
}
