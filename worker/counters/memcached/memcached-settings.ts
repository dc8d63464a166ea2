// The rows of the settings of a memory cache.
import { bool, choice, duration, int, list, text } from '../../../shared/settings/kind.ts';
import { bothNames } from '../../setting-names.ts';

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
      doc: 'How often to resolve the record again, in seconds if without a unit; 0: never',
    }),
    maxIdleConnections: int({
      names: bothNames('MEMSTORE_MAX_IDLE_CONNS'),
      default: 2,
      doc: 'Connections to keep to each node, opened on demand; less than 1 means 2',
    }),
    longKeys: choice({
      names: bothNames('MEMSTORE_LONG_KEYS'),
      words: { fail: 'fail', hash: 'hash' },
      anyCase: true,
      default: 'fail',
      doc: 'Counter keys that the protocol does not accept, above 250 bytes or with a blank: `fail` fails the request, which Envoy lets pass by default, so a caller with a long header is not limited; `hash` counts them under their SHA-256: use it unless workers of the reference count in the same nodes; the same for every worker',
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
        secret: 'file',
        doc: 'File of the private key',
      }),
      caFile: text({
        names: bothNames('MEMSTORE_TLS_CACERT'),
        default: '',
        doc: "CA certificate file to verify the nodes' certificates",
      }),
      skipHostnameVerification: bool({
        names: bothNames('MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION'),
        default: false,
        doc: "Accept a node's certificate for another host name",
      }),
    },
  };
}
