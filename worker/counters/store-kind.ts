// What a kind of counter store says of itself: what it can, its checks, and how it is made from the settings.
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
  /** The words for it in BACKEND_TYPE, the one for documents first. */
  readonly words: readonly [string, ...string[]];
  /** It counts limits of every algorithm, not only fixed windows. A server needs scripts for it (behaviour:
   * limiter-scripts). */
  readonly limiters: boolean;
  /** Hits are in their counters when it answers. Without that a lease would be inexact, and counting cannot
   * stop over the limit (behaviour: over-limit-stops-counting). */
  readonly countsBeforeAnswer: boolean;
  /** Workers, and processes of one worker, count together. */
  readonly isShared: boolean;
  /** It is a server, or several, which may be away. */
  readonly needsServer: boolean;
  /** Sentences about mistakes in its settings that prevent its use. */
  check(reading: CountingReading): string[];
  /** Sentences about settings without effect. */
  warn(reading: CountingReading): string[];
  /** The rows of files that its TLS needs; those that are not given may be among them. */
  tlsFiles(reading: CountingReading): Setting<string>[];
  /** Its servers take no long counter keys, nor blanks in them. */
  readonly takesShortKeysOnly: boolean;
  /** Its servers get counter keys as they are, however long; else the SHA-256 of those above 1,024 bytes. */
  keepsLongKeys(settings: AddressSettings): boolean;
  /** One line for each of its settings that workers which count together must have in common (agreement.ts). */
  agreementParts(settings: AddressSettings): string[];
  /** How traces show a decision's wait for it; undefined for none. */
  describeCall(hits: readonly Hit[], settings: CountingSettings): StoreCall | undefined;
  /** Loads its code only now: each store takes memory and time at the start. */
  create(settings: CountingSettings, deps: StoreKindDeps): Promise<CounterStore>;
}

export interface StoreKindDeps {
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** For the breakers of its servers; the prefix is that of their statistics. */
  addOutages(metricPrefix: string): Outages;
}

/** A span. */
export interface StoreCall {
  readonly scope: string;
  readonly name: string;
  readonly attributes: SpanAttributes;
}
