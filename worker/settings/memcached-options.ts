// Converts the settings of a memory cache to the options of its store.
import { parseHostPort } from '../../shared/host-port.ts';
import type { MemcachedNodesOptions } from '../counters/memcached/memcached-nodes.ts';
import type { WorkerSettings } from '../settings.ts';
import { givenName } from './names.ts';

export function toMemcachedOptions(settings: WorkerSettings): MemcachedNodesOptions {
  const { memcached, counting } = settings;
  const { addresses, srv, srvRefreshMs, maxIdleConnections, tls } = memcached;
  const hasPair = tls.certFile !== '' && tls.keyFile !== '';
  return {
    source:
      srv === ''
        ? {
            kind: 'list',
            addresses: addresses
              .map((address) => parseHostPort(address, 1))
              .flatMap((parsed) => (parsed.ok ? [parsed.value] : [])),
          }
        : {
            kind: 'srv',
            name: srv,
            setting: givenName(settings, 'MEMSTORE_SRV'),
            refreshMs: srvRefreshMs,
          },
    maxIdleConnections,
    tls: tls.enabled
      ? {
          files: {
            ca: tls.caFile === '' ? undefined : tls.caFile,
            cert: hasPair ? tls.certFile : undefined,
            key: hasPair ? tls.keyFile : undefined,
          },
          skipHostnameVerification: tls.skipHostnameVerification,
        }
      : undefined,
    jitterMaxSeconds: counting.expirationJitterSeconds,
    failureMode: counting.failureMode,
  };
}
