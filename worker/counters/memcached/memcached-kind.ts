// The kind of store that counts in a memory cache: what it can, and how it is made from the settings.
import { Resolver } from 'node:dns/promises';
import { parseHostPort, showHostPort } from '../../../shared/host-port.ts';
import type { AgreementSettings } from '../../agreement.ts';
import {
  checkMemcached,
  listMemcachedTlsFiles,
  warnMemcached,
} from '../../settings/memcached-checks.ts';
import type { StoreKind } from '../store-kinds.ts';

/** Timing of look-ups of nodes. */
const dnsTimeoutMs = 2_000;
const dnsTries = 2;

export const memcachedKind: StoreKind = {
  words: ['memstore', 'memcache'],
  limiters: false,
  countsBeforeAnswer: false,
  isShared: true,
  needsServer: true,
  check: checkMemcached,
  warn: warnMemcached,
  tlsFiles: listMemcachedTlsFiles,
  agreementParts: ({ memcached }) => [`nodes: ${showNodes(memcached)}`],
  describeCall: (hits) => ({
    scope: 'memcached.cacheImpl',
    name: 'Memcached Fetch Execution',
    attributes: { 'keysToGet length': hits.length },
  }),
  async create(settings, { clock, log, metrics, addOutages }) {
    const { createMemcachedStore } = await import('./memcached-store.ts');
    const { createMemcachedMetrics } = await import('./memcached-metrics.ts');
    const { toMemcachedOptions } = await import('../../settings/memcached-options.ts');
    const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: dnsTries });
    return createMemcachedStore(toMemcachedOptions(settings), {
      clock,
      log,
      metrics: createMemcachedMetrics(metrics),
      outages: addOutages('ratelimit.store'),
      resolveSrv: (name) => resolver.resolveSrv(name),
    });
  },
};

/** The DNS ignores the case of names. */
function showNodes({ srv, addresses }: AgreementSettings['memcached']): string {
  if (srv !== '') return `those of ${srv.toLowerCase()}`;
  const nodes = addresses.flatMap((address) => {
    const parsed = parseHostPort(address, 1);
    return parsed.ok ? [showHostPort(parsed.value).toLowerCase()] : [];
  });
  return nodes.length === 0 ? 'none' : nodes.join(', ');
}
