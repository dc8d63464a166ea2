// The kind of store that counts in a memory cache: its capabilities, and how it is made from the settings.
import { Resolver } from 'node:dns/promises';
import { parseHostPort, showHostPort } from '../../../shared/host-port.ts';
import { measureExpiry, toClientTls } from '../../client-tls.ts';
import { givenName } from '../../setting-names.ts';
import type { CountingSettings } from '../counting-settings.ts';
import type { StoreKind } from '../store-kind.ts';
import { checkMemcached, listMemcachedTlsFiles, warnMemcached } from './memcached-checks.ts';
import type { MemcachedStoreOptions } from './memcached-store.ts';

/** Time limits of DNS lookups of nodes. */
const dnsTimeoutMs = 2_000;
const dnsTries = 2;

export const memcachedKind: StoreKind = {
  words: ['memstore', 'memcache'],
  limiters: false,
  countsBeforeAnswer: false,
  isShared: true,
  acceptsShortKeysOnly: true,
  needsServer: true,
  check: checkMemcached,
  warn: warnMemcached,
  tlsFiles: listMemcachedTlsFiles,
  // A setting of its own decides about long keys.
  storesLongKeys: () => true,
  agreementParts: ({ memcached }) => [
    `nodes: ${showNodes(memcached)}`,
    ...(memcached.longKeys === 'hash' ? ['keys that nodes do not take: hashed'] : []),
  ],
  describeCall: (hits) => ({
    scope: 'memcached.cacheImpl',
    name: 'Memcached Fetch Execution',
    attributes: { 'keysToGet length': hits.length },
  }),
  async create(settings, { clock, log, metrics, addOutages }) {
    const { MemcachedStore } = await import('./memcached-store.ts');
    const { createMemcachedMetrics } = await import('./memcached-metrics.ts');
    const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: dnsTries });
    const options = toMemcachedOptions(settings);
    if (options.tls !== undefined) measureExpiry('store', options.tls.files, { metrics, clock });
    return new MemcachedStore(options, {
      clock,
      log,
      metrics: createMemcachedMetrics(metrics),
      outages: addOutages('ratelimit.store'),
      resolveSrv: (name) => resolver.resolveSrv(name),
    });
  },
};

function toMemcachedOptions(settings: CountingSettings): MemcachedStoreOptions {
  const { memcached, counting } = settings;
  const { addresses, srv, srvRefreshMs, maxIdleConnections, tls } = memcached;
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
    tls: tls.enabled ? toClientTls(tls) : undefined,
    jitterMaxSeconds: counting.expirationJitterSeconds,
    failureMode: counting.failureMode,
    longKeys: memcached.longKeys,
  };
}

/** In lower case: the DNS ignores the case of names. */
function showNodes({ srv, addresses }: CountingSettings['memcached']): string {
  if (srv !== '') return `those of ${srv.toLowerCase()}`;
  const nodes = addresses.flatMap((address) => {
    const parsed = parseHostPort(address, 1);
    return parsed.ok ? [showHostPort(parsed.value).toLowerCase()] : [];
  });
  return nodes.length === 0 ? 'none' : nodes.join(', ');
}
