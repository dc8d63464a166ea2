// Converts the settings of one key-value store to the options of the store.
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import { toClientTls } from '../../client-tls.ts';
import { givenName } from '../../setting-names.ts';
import type { CountingSettings } from '../counting-settings.ts';
import { parseStoreTarget } from './address.ts';
import { createCloudCredentialsReader, createCloudIamCredentials } from './cloud-iam-token.ts';
import { createRegionReader } from './cloud-region.ts';
import { createFileCredentials, parseCredentials, type ReadCredentials } from './credentials.ts';
import type { StoreSettings } from './redis-settings.ts';
import { createRemedies, type RemedyOptions } from './remedies.ts';
import type { RedisStoreOptions } from './store-deps.ts';

/**
 * The provider ends connections opened with a token after 12 hours (behaviour: cloud-iam): they are replaced before
 * that, while no decision uses them.
 */
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
  const addressSetting = givenName(settings, `${family}_URL`);
  if (store.target === undefined) throw new AppError('internal', `${which} has no address`);
  return {
    target: store.target,
    addressSetting,
    readCredentials: createReader(store, clock),
    sentinelCredentials: parseCredentials(store.sentinelAuth),
    tls: store.tls || store.target.tls ? toClientTls(tls) : undefined,
    pool: {
      size: store.poolSize,
      onEmpty: { behavior: store.poolOnEmpty, waitMs: store.poolOnEmptyWaitMs },
      closeOnReadonlyError,
      describeRemedy: createRemedies({
        addressSetting,
        type: store.type,
        credentialsFrom: findCredentials(store),
        tls: store.tls || store.target.tls,
        closesOnReadonly: closeOnReadonlyError,
      }),
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

/** Finds the source of the credentials, in the order of precedence. */
function findCredentials(store: StoreSettings): RemedyOptions['credentialsFrom'] {
  if (store.cloudIam.enabled) return 'CLOUDIAM_USER_ID';
  const address = parseStoreTarget(store.url, store.type, store.socketType);
  if (address.ok && address.value.credentials !== undefined) return 'URL';
  return store.authFile === '' ? 'AUTH' : 'AUTH_FILE';
}

/** Undefined: the target's credentials are used, if any. */
function createReader(
  { authFile, cloudIam, target }: StoreSettings,
  clock: Clock,
): ReadCredentials | undefined {
  if (cloudIam.enabled) {
    const readRegion = createRegionReader(cloudIam.region);
    const readCloudCredentials = createCloudCredentialsReader(readRegion);
    return createCloudIamCredentials(cloudIam, { clock, readRegion, readCloudCredentials });
  }
  // Credentials in the address take precedence over the file, as they do over AUTH.
  if (authFile === '' || target?.credentials !== undefined) return undefined;
  return createFileCredentials(authFile);
}
