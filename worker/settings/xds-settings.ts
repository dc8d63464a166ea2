// The settings of a management server that delivers the rules.
import { bool, choice, duration, float, int, map, text } from '../../shared/settings/kind.ts';

export function xdsSettings() {
  return {
    nodeId: text({
      names: ['CONFIG_GRPC_XDS_NODE_ID'],
      default: 'default',
      doc: 'Name of this node',
    }),
    nodeMetadata: text({
      names: ['CONFIG_GRPC_XDS_NODE_METADATA'],
      default: '',
      doc: 'Metadata of this node, as comma-separated key=value items; the worker adds its own, whose keys begin with `ratelane.`',
    }),
    serverUrl: text({
      names: ['CONFIG_GRPC_XDS_SERVER_URL'],
      default: 'localhost:18000',
      secret: 'url',
      doc: 'Address of the management server, or a comma-separated list of them: when one is lost the next is asked at once, each with the same headers and TLS settings',
    }),
    connectRetryIntervalMs: duration({
      names: ['CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL'],
      default: 3_000,
      doc: 'Wait after an attempt to connect that failed; 0 is 100ms',
    }),
    additionalHeaders: map({
      names: ['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS'],
      example: 'x-team:edge,x-zone:b',
      secret: 'whole',
      doc: 'Headers sent to the management server, as comma-separated key:value items',
    }),
    tokenFile: text({
      names: ['CONFIG_GRPC_XDS_TOKEN_FILE'],
      default: '',
      secret: 'file',
      doc: 'File of a token, sent as the header `authorization: Bearer TOKEN` and read again at every connection; not together with that header in CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    }),
    tls: {
      enabled: bool({
        names: ['CONFIG_GRPC_XDS_SERVER_USE_TLS'],
        default: false,
        doc: 'Speak TLS with the management server',
      }),
      certFile: text({
        names: ['CONFIG_GRPC_XDS_CLIENT_TLS_CERT'],
        default: '',
        doc: 'File of the client certificate chain, used together with the key',
      }),
      keyFile: text({
        names: ['CONFIG_GRPC_XDS_CLIENT_TLS_KEY'],
        default: '',
        secret: 'file',
        doc: 'File of the private key',
      }),
      caFile: text({
        names: ['CONFIG_GRPC_XDS_SERVER_TLS_CACERT'],
        default: '',
        doc: "CA certificate file to verify the server's certificate, beside the host's",
      }),
      san: text({
        names: ['CONFIG_GRPC_XDS_SERVER_TLS_SAN'],
        default: '',
        doc: "Name that the server's certificate must be valid for, in place of its host",
      }),
    },
    backoff: {
      initialIntervalMs: duration({
        names: ['XDS_CLIENT_BACKOFF_INITIAL_INTERVAL'],
        default: 10_000,
        doc: 'Wait before the first retry of a stream that ended; 0 is 100ms',
      }),
      maxIntervalMs: duration({
        names: ['XDS_CLIENT_BACKOFF_MAX_INTERVAL'],
        default: 60_000,
        doc: 'The maximum wait between retries; 0 is 10s',
      }),
      factor: float({
        names: ['XDS_CLIENT_BACKOFF_RANDOM_FACTOR'],
        default: 0.5,
        min: 0,
        max: 100,
        doc: 'Growth of the wait: times this when above 1, else times 1 plus this',
      }),
      jitter: bool({
        names: ['XDS_CLIENT_BACKOFF_JITTER'],
        default: false,
        doc: 'Randomize each wait, between the first wait and the next one',
      }),
    },
    link: {
      enabled: bool({
        names: ['CONFIG_FLEET_LINK'],
        default: true,
        doc: 'Report traffic and limited values to a management server that is a Ratelane control plane',
      }),
      values: choice({
        names: ['CONFIG_FLEET_LINK_VALUES'],
        words: { plain: 'plain', hashed: 'hashed', none: 'none' },
        default: 'plain',
        doc: 'How these reports include values of descriptors: as they are, which the debug port shows too, as hashes, or not at all',
      }),
      allowsReset: bool({
        names: ['CONFIG_FLEET_LINK_RESET'],
        default: true,
        doc: 'Let users with write access to that control plane reset counters',
      }),
    },
    maxMessageBytes: int({
      names: ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES'],
      default: 0,
      min: 0,
      max: 2_147_483_647,
      example: 8_388_608,
      doc: 'The largest message accepted; 0 is 4 MiB',
    }),
  };
}
