// Converts the settings of one key-value store to the options of the store.
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import { toClientTls } from '../../client-tls.ts';
import { givenName } from '../../setting-names.ts';
import type { CountingSettings } from '../counting-settings.ts';
import { createCloudCredentialsReader, createCloudIamCredentials } from './cloud-iam-token.ts';
import { createRegionReader } from './cloud-region.ts';
import { createFileCredentials, parseCredentials, type ReadCredentials } from './credentials.ts';
import type { StoreSettings } from './redis-settings.ts';
import type { RedisStoreOptions } from './store-deps.ts';

/** The provider ends connections opened with a token after 12 hours (behaviour: cloud-iam): they are
 * replaced before that, while no decision uses them. */
const tokenConnectionMs = 11.5 * 3_600_000;

/** The store for limits per second uses only its own settings (behaviour: per-second-store). */
export function toRedisStoreOptions(
  settings: CountingSettings,
  which: 'store' | 'perSecondStore',
  clock: Clock,
): RedisStoreOptions {
  const store = settings[which];
  const family = which === 'store' ? 'KVSTORE' : 'KVSTORE_PERSECOND';
  const { closeOnReadonlyError, startup, tls } = settings.bothStores;
  if (store.target === undefined) throw new AppError('internal', `${which} has no address`);
  return {
    target: store.target,
    addressSetting: givenName(settings, `${family}_URL`),
    sentinelAuthSetting: givenName(settings, `${family}_SENTINEL_AUTH`),
    readCredentials: createReader(store, clock),
    sentinelCredentials: parseCredentials(store.sentinelAuth),
    tls: store.tls || store.target.tls ? toClientTls(tls) : undefined,
    pool: {
      size: store.poolSize,
      onEmpty: { behavior: store.poolOnEmpty, waitMs: store.poolOnEmptyWaitMs },
      closeOnReadonlyError,
      readonlySetting: givenName(settings, 'KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR'),
      maxAgeMs: store.cloudIam.enabled ? tokenConnectionMs : undefined,
      timeoutMs: store.timeoutMs,
      pipelineWindowMs: store.pipelineWindowMs,
      jitterMaxSeconds: settings.counting.expirationJitterSeconds,
      failureMode: settings.counting.failureMode,
    },
    clusterParallelism: store.clusterPipelineParallelism,
    startup,
  };
}

/** Undefined: the target's credentials, if any. */
function createReader(
  { authFile, cloudIam, target }: StoreSettings,
  clock: Clock,
): ReadCredentials | undefined {
  if (cloudIam.enabled) {
    const readRegion = createRegionReader(cloudIam.region);
    const readCloudCredentials = createCloudCredentialsReader(readRegion);
    return createCloudIamCredentials(cloudIam, { clock, readRegion, readCloudCredentials });
  }
  // Credentials in the address take precedence over the file, as over AUTH.
  if (authFile === '' || target?.credentials !== undefined) return undefined;
  return createFileCredentials(authFile);
}
