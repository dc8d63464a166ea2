// The settings that must be the same on all workers that share a store, as one short text. The debug port,
// dashboards and the control plane compare it.
import { createHash } from 'node:crypto';
import { storeKinds } from './counters/store-kinds.ts';
import type { WorkerSettings } from './settings.ts';

export interface Agreement {
  /** 8 hexadecimal digits; equal exactly when `parts` are equal (except for rare collisions). */
  readonly hash: string;
  /** The hash as a number, for a gauge. */
  readonly number: number;
  /** One line for each part that must be the same. */
  readonly parts: readonly string[];
}

export type AgreementSettings = Pick<
  WorkerSettings,
  'counting' | 'limits' | 'memcached' | 'store' | 'perSecondStore' | 'bothStores'
>;

const countedBeside = {
  false: 'counted',
  true: 'not counted',
  enforced: 'not counted where it refuses',
};
const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/**
 * Included is what decides which counter a hit goes to, and whether it is counted:
 * - BACKEND_TYPE: another kind of store is another counter.
 * - MEMSTORE_HOST_PORT in its order, or the name of MEMSTORE_SRV: both choose the node of a key. Not how
 *   often the record is read, which differs only while the record changes.
 * - The database of KVSTORE_URL, and whether limits per second have a store of their own and in which
 *   database. Addresses are not included: workers may reach one store by different ones, as with a proxy
 *   beside each worker.
 * - KVSTORE_LONG_KEYS and MEMSTORE_LONG_KEYS: a digest is a different key.
 * - CACHE_KEY_PREFIX, WEEK_RATE_LIMIT_RESET_DAY and USE_CALENDAR_MONTH_RATE_LIMIT: they are in the key.
 * - STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT where it has an effect: one worker counts hits that another
 *   does not.
 *
 * Settings that do not affect counters are not included. EXPIRATION_JITTER_MAX_SECONDS: a counter outlives its window
 * with any value. NEAR_LIMIT_RATIO, SANITIZE_DESCRIPTOR_METRIC_DOTS: they change statistics. SHADOW_MODE, QUOTA_MODE,
 * headers, dynamic metadata: they change answers, and may be tried on one worker first. LOCAL_CACHE_SIZE_IN_BYTES: hits
 * that it does not count are over the limit already. Timeouts, pools, TLS: how a store is reached.
 * KVSTORE_FAILURE_MODE: without the store no workers count together. MERGE_DOMAIN_CONFIG and where rules come from: the
 * version shows which rules are in force.
 *
 * The text of the lines is hashed: changing it makes workers of two releases differ.
 */
export function toAgreement(settings: AgreementSettings): Agreement {
  const { counting, limits } = settings;
  const kind = storeKinds[counting.backend];
  const stops = kind.countsBeforeAnswer ? limits.stopIncrementWhenOverLimit : 'false';
  const parts = [
    `backend: ${counting.backend}`,
    ...kind.agreementParts(settings),
    `cache key prefix: ${JSON.stringify(counting.keyPrefix)}`,
    `weeks begin on: ${weekdays[limits.weekResetDay]}`,
    `months: ${limits.calendarMonth ? 'of the calendar' : '30 days'}`,
    `descriptors beside one that is over its limit: ${countedBeside[stops]}`,
  ];
  const hash = createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 8);
  return { hash, number: Number.parseInt(hash, 16), parts };
}
