// The settings of a memory cache: their rows and checks.
import { parseHostPort } from '../../../shared/host-port.ts';
import { bool, duration, int, list, text } from '../../../shared/settings/kind.ts';
import { joinNames, nameOf, showSetting } from '../../../shared/settings/parse-settings.ts';
import type { Setting } from '../../../shared/settings/setting.ts';
import { listClientTlsRows, warnHalfPair } from '../../client-tls.ts';
import { bothNames } from '../../setting-names.ts';
import type { CountingReading } from '../counting-settings.ts';
import { isSrvName } from './srv-record.ts';

export function memcachedSettings() {
  return {
    addresses: list({
      names: bothNames('MEMSTORE_HOST_PORT'),
      example: 'cache-1:11211,cache-2:11211',
      secret: 'url',
      doc: 'Comma-separated host:port of all nodes, the same for every worker; not together with MEMSTORE_SRV',
    }),
    srv: text({
      names: bothNames('MEMSTORE_SRV'),
      default: '',
      doc: 'SRV record that lists the nodes, such as _memcache._tcp.cache.example.com; not together with MEMSTORE_HOST_PORT',
    }),
    srvRefreshMs: duration({
      names: bothNames('MEMSTORE_SRV_REFRESH'),
      default: 0,
      bareUnit: 's',
      example: 30_000,
      doc: 'How often the record is looked up again, a number without a unit being seconds; 0 is never',
    }),
    maxIdleConnections: int({
      names: bothNames('MEMSTORE_MAX_IDLE_CONNS'),
      default: 2,
      doc: 'Connections kept to each node, opened when they are needed; less than 1 is 2',
    }),
    tls: {
      enabled: bool({
        names: bothNames('MEMSTORE_TLS'),
        default: false,
        doc: 'Speak TLS with the nodes',
      }),
      certFile: text({
        names: bothNames('MEMSTORE_TLS_CLIENT_CERT'),
        default: '',
        doc: 'File of the client certificate chain',
      }),
      keyFile: text({
        names: bothNames('MEMSTORE_TLS_CLIENT_KEY'),
        default: '',
        doc: 'File of the private key',
      }),
      caFile: text({
        names: bothNames('MEMSTORE_TLS_CACERT'),
        default: '',
        doc: "File of the authority that the nodes' certificates come from",
      }),
      skipHostnameVerification: bool({
        names: bothNames('MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION'),
        default: false,
        doc: "Accept a node's certificate for another host name",
      }),
    },
  };
}

/** Sentences about mistakes that prevent its use. */
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
      `${shown}: not the name of an SRV record; write such as _memcache._tcp.cache.example.com`,
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
  return [...warnings, ...warnHalfPair(reading, table.memcached.settings.tls)];
}

/** The rows of files that TLS with the nodes needs. */
export function listMemcachedTlsFiles({ table, values }: CountingReading): Setting<string>[] {
  const { tls } = values.memcached;
  return tls.enabled ? listClientTlsRows(table.memcached.settings.tls, tls) : [];
}
