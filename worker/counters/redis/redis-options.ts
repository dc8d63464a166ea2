// What the settings say about one key-value store, as the store takes it.
import { AppError } from '../../../shared/errors.ts';
import type { WorkerSettings } from '../../settings.ts';
import type { StoreTlsOptions } from './connection-tls.ts';
import { createFileCredentials, parseCredentials } from './credentials.ts';
import type { RedisStoreOptions } from './store-deps.ts';

/** The store for limits per second takes its own settings alone (decisions 3). */
export function toRedisStoreOptions(
  settings: WorkerSettings,
  which: 'store' | 'perSecondStore',
): RedisStoreOptions {
  const store = settings[which];
  const { closeOnReadonlyError, startup, tls } = settings.bothStores;
  if (store.target === undefined) throw new AppError('internal', `${which} has no address`);
  return {
    target: store.target,
    addressSetting: which === 'store' ? 'KVSTORE_URL' : 'KVSTORE_PERSECOND_URL',
    readCredentials: store.authFile === '' ? undefined : createFileCredentials(store.authFile),
    sentinelCredentials: parseCredentials(store.sentinelAuth),
    tls: store.tls || store.target.tls ? toTlsOptions(tls) : undefined,
    pool: {
      size: store.poolSize,
      onEmpty: { behavior: store.poolOnEmpty, waitMs: store.poolOnEmptyWaitMs },
      closeOnReadonlyError,
      timeoutMs: store.timeoutMs,
      pipelineWindowMs: store.pipelineWindowMs,
      jitterMaxSeconds: settings.counting.expirationJitterSeconds,
    },
    clusterParallelism: store.clusterPipelineParallelism,
    startup,
  };
}

function toTlsOptions({
  caFile,
  certFile,
  keyFile,
  skipHostnameVerification,
}: WorkerSettings['bothStores']['tls']): StoreTlsOptions {
  const hasPair = certFile !== '' && keyFile !== '';
  return {
    files: {
      ca: caFile || undefined,
      cert: hasPair ? certFile : undefined,
      key: hasPair ? keyFile : undefined,
    },
    skipHostnameVerification,
  };
}
