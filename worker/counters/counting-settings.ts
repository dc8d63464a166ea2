// The settings of where hits are counted, for all kinds of stores: their rows, and their values as the stores receive
// them.
import { bool, choice, int, text } from '../../shared/settings/kind.ts';
import type { TableReading } from '../../shared/settings/parse-settings.ts';
import { section, type TableValues } from '../../shared/settings/setting.ts';
import { bothNames, type GivenNames } from '../setting-names.ts';
import { memcachedSettings } from './memcached/memcached-settings.ts';
import { bothStoresSettings, type StoreSettings, storeSettings } from './redis/redis-settings.ts';

/** Part of the worker's table. `kinds` has the names of the kinds of stores by their words in BACKEND_TYPE. */
export function countingTable<Kind extends string>(
  kinds: Readonly<Record<string, Kind>>,
  defaultKind: Kind,
) {
  return {
    counting: section('Counting', {
      backend: choice({
        names: ['BACKEND_TYPE'],
        words: { ...kinds, '': defaultKind },
        default: defaultKind,
        doc: 'Where hits are counted; `memory` counts inside each worker by itself, so that N workers allow N times the limit',
      }),
      keyPrefix: text({
        names: ['CACHE_KEY_PREFIX'],
        default: '',
        doc: 'Prefix of every counter key',
      }),
      failureMode: choice({
        names: ['KVSTORE_FAILURE_MODE'],
        words: { error: 'error', allow: 'allow', deny: 'deny', local: 'local' },
        anyCase: true,
        default: 'error',
        doc: 'How decisions are answered while the store (Redis or memory cache) fails, in upper or lower case: an error, OK, over the limit, or by counting in this process alone until it recovers',
      }),
      expirationJitterSeconds: int({
        names: ['EXPIRATION_JITTER_MAX_SECONDS'],
        default: 300,
        max: 2_147_483_647,
        doc: 'The most random seconds by which a counter outlives its window; 0 or less: none',
      }),
    }),
    store: section('Key-value store', storeSettings('KVSTORE')),
    perSecondStore: section('Key-value store for limits per second', {
      enabled: bool({
        names: bothNames('KVSTORE_PERSECOND'),
        default: false,
        doc: 'Count limits per second in a store of their own',
      }),
      ...storeSettings('KVSTORE_PERSECOND'),
    }),
    bothStores: section('Both key-value stores', bothStoresSettings()),
    memcached: section('Memory cache', memcachedSettings()),
  };
}

type CountingTable = ReturnType<typeof countingTable<string>>;
export type CountingReading = TableReading<CountingTable>;

type Values = TableValues<CountingTable>;

/** The part of the worker's settings from which the stores are made. */
export interface CountingSettings
  extends GivenNames,
    Pick<Values, 'counting' | 'bothStores' | 'memcached'> {
  readonly store: StoreSettings;
  readonly perSecondStore: StoreSettings & Pick<Values['perSecondStore'], 'enabled'>;
  readonly health: { readonly needsStoreConnection: boolean };
}

/** The settings that determine the servers, and the database on them. */
export type AddressSettings = Pick<
  CountingSettings,
  'store' | 'perSecondStore' | 'bothStores' | 'memcached'
>;
