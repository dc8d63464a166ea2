// Checks of the settings of a memory cache, which run when BACKEND_TYPE selects one.
import { parseHostPort } from '../../../shared/host-port.ts';
import { joinNames, nameOf, showSetting } from '../../../shared/settings/parse-settings.ts';
import type { Setting } from '../../../shared/settings/setting.ts';
import { listClientTlsRows, warnHalfPair } from '../../client-tls.ts';
import type { CountingReading } from '../counting-settings.ts';
import { isSrvName } from './srv-record.ts';

/** Human-readable sentences about mistakes that prevent its use. */
export function checkMemcached(reading: CountingReading): string[] {
  const { addresses, srv } = reading.values.memcached;
  const rows = reading.table.memcached.settings;
  const problems: string[] = [];
  if (addresses.length > 0 && srv !== '') {
    const names = `${nameOf(reading, rows.addresses)} and ${nameOf(reading, rows.srv)}`;
    problems.push(`${names} are both given; remove one of them`);
  }
  if (srv !== '' && !isSrvName(srv)) {
    const shown = showSetting(reading, rows.srv);
    problems.push(
      `${shown}: not the name of an SRV record; write a name such as _memcache._tcp.cache.example.com`,
    );
  }
  for (const [index, address] of addresses.entries()) {
    const result = parseHostPort(address, 1);
    if (result.ok && result.value.host !== '') continue;
    const reason = result.ok ? 'the host is missing' : result.reason;
    const shown = showSetting(reading, rows.addresses);
    problems.push(`${shown}: address ${index + 1}: ${reason}; write ${rows.addresses.accepts}`);
  }
  return problems;
}

/** Settings that a memory cache does not support, or that have no effect with it. */
export function warnMemcached(reading: CountingReading): string[] {
  const { table, values } = reading;
  const { memcached } = values;
  const backend = showSetting(reading, table.counting.settings.backend);
  const { addresses, srv } = table.memcached.settings;
  const warnings: string[] = [];
  if (memcached.addresses.length === 0 && memcached.srv === '') {
    warnings.push(
      `${joinNames(addresses)} and ${joinNames(srv)} are not set: ${backend} counts nothing without a node, so that nothing is limited`,
    );
  }
  const { longKeys } = table.memcached.settings;
  if (warnings.length === 0 && reading.of(longKeys).given === undefined) {
    warnings.push(
      `${joinNames(longKeys)} is not set: a request whose counter key is longer than 250 bytes or has a blank fails, and Envoy lets it pass by default; write hash to count it, or fail where workers of the reference count in the same nodes`,
    );
  }
  return [...warnings, ...warnHalfPair(reading, table.memcached.settings.tls)];
}

/** The settings of the files that TLS with the nodes needs. */
export function listMemcachedTlsFiles({ table, values }: CountingReading): Setting<string>[] {
  const { tls } = values.memcached;
  return tls.enabled ? listClientTlsRows(table.memcached.settings.tls, tls) : [];
}
