// The settings of the key-value stores: their rows, and their values as redis-options.ts uses them. The second store,
// for limits per second, has the same rows under names of its own, and neither store uses the other's settings as a
// fallback (behaviour: per-second-store).
import { bool, choice, duration, int, text } from '../../../shared/settings/kind.ts';
import type { Environment, GroupValues } from '../../../shared/settings/setting.ts';
import { bothNames, mixedNames } from '../../setting-names.ts';
import { parseStoreTarget, type StoreTarget } from './address.ts';
import { parseCredentials } from './credentials.ts';

/** The rows whose names begin with `prefix`. */
export function storeSettings(prefix: 'KVSTORE' | 'KVSTORE_PERSECOND') {
  const names = (rest: string) => bothNames(`${prefix}_${rest}`);
  const cloudIamNames = (rest: string) => ({
    names: names(`CLOUDIAM_${rest}`),
    otherNames: mixedNames(`${prefix}_CLOUDIAM_${rest}`),
  });
  return {
    url: text({
      names: names('URL'),
      default: '',
      secret: 'url',
      doc: 'Address: host:port, redis://user:password@host:port/db (rediss: with TLS) or the path of a unix socket; a comma-separated list for the types sentinel (master name first) and cluster',
    }),
    socketType: choice({
      names: names('SOCKET_TYPE'),
      words: { tcp: 'tcp', unix: 'unix', '': undefined },
      default: undefined,
      defaultText: 'from the address',
      doc: 'How to reach the store',
    }),
    type: choice({
      names: names('TYPE'),
      words: { single: 'single', sentinel: 'sentinel', cluster: 'cluster' },
      anyCase: true,
      default: 'single',
      doc: 'Kind of server at the address (case-insensitive)',
    }),
    timeoutMs: duration({
      names: names('TIMEOUT'),
      default: 10_000,
      min: 1,
      doc:
        prefix === 'KVSTORE'
          ? 'Timeout of connecting, writing and reading, and of a whole decision'
          : 'Timeout of connecting, writing and reading; that of a whole decision is KVSTORE_TIMEOUT',
    }),
    auth: text({
      names: names('AUTH'),
      default: '',
      secret: 'whole',
      doc: 'Password, or user:password',
    }),
    authFile: text({
      names: names('AUTH_FILE'),
      default: '',
      secret: 'file',
      doc: 'File with that password, read again at every connection attempt; not together with AUTH',
    }),
    sentinelAuth: text({
      names: names('SENTINEL_AUTH'),
      default: '',
      secret: 'whole',
      doc: 'Password, or user:password, of the sentinels; unset: none is sent',
    }),
    tls: bool({ names: names('TLS'), default: false, doc: 'Speak TLS with the store' }),
    poolSize: int({
      names: names('POOL_SIZE'),
      default: 10,
      min: 1,
      max: 10_000,
      doc: 'Connections to keep',
    }),
    poolOnEmpty: choice({
      names: names('POOL_ON_EMPTY_BEHAVIOR'),
      // Templates write '' for an empty value; the reference treats it as WAIT.
      words: { CREATE: 'create', ERROR: 'error', WAIT: 'wait', '': 'wait' },
      anyCase: true,
      default: 'create',
      doc: 'What a decision does when all connections are busy, in upper or lower case: open another after the wait, fail after it, or continue waiting',
    }),
    poolOnEmptyWaitMs: duration({
      names: names('POOL_ON_EMPTY_WAIT_DURATION'),
      default: 1_000,
      doc: 'The wait before CREATE and ERROR apply',
    }),
    pipelineWindowMs: duration({
      names: names('PIPELINE_WINDOW'),
      default: 0,
      example: 0.15,
      doc: 'How long to delay a batch to gather more decisions; 300us saves a quarter to a third of the CPU at moderate rates',
    }),
    pipelineLimit: int({
      names: names('PIPELINE_LIMIT'),
      default: 0,
      doc: 'Formerly the size of a batch',
      deprecated: 'it has no effect',
    }),
    clusterPipelineParallelism: int({
      names: names('CLUSTER_PIPELINE_PARALLELISM'),
      default: 1,
      min: 0,
      doc: 'How many nodes of a cluster are asked at once for one decision; 0 is the size of the pool, which is also the maximum',
    }),
    cloudIam: {
      enabled: bool({
        ...cloudIamNames('AUTH'),
        default: false,
        doc: 'Authenticate with a signed token in place of a password',
      }),
      cacheName: text({
        ...cloudIamNames('CACHE_NAME'),
        default: '',
        doc: 'Serverless cache name or replication group id, not the host name',
      }),
      userId: text({
        ...cloudIamNames('USER_ID'),
        default: '',
        doc: 'The user to connect as',
      }),
      serverless: bool({
        ...cloudIamNames('SERVERLESS'),
        default: false,
        doc: 'Whether the cache is serverless',
      }),
      region: text({
        ...cloudIamNames('REGION'),
        default: '',
        doc: 'The region of the cache; without it the one in AWS_REGION or AWS_DEFAULT_REGION, in the shared config file, or of the machine by its instance metadata',
      }),
    },
  };
}

/** The rows that both stores have in common. */
export function bothStoresSettings() {
  return {
    longKeys: choice({
      names: bothNames('KVSTORE_LONG_KEYS'),
      words: { hash: 'hash', whole: 'whole' },
      anyCase: true,
      default: 'hash',
      doc: 'Counter keys above 1,024 bytes: `hash` counts them under their SHA-256, after CACHE_KEY_PREFIX, so that callers with long values do not fill the store; `whole` as the reference has them, while its workers count in the same store; the same for every worker',
    }),
    tls: {
      certFile: text({
        names: bothNames('KVSTORE_TLS_CLIENT_CERT'),
        default: '',
        doc: 'File of the client certificate chain',
      }),
      keyFile: text({
        names: bothNames('KVSTORE_TLS_CLIENT_KEY'),
        default: '',
        secret: 'file',
        doc: 'File of the private key',
      }),
      caFile: text({
        names: bothNames('KVSTORE_TLS_CACERT'),
        default: '',
        doc: "CA certificate file to verify the store's certificate",
      }),
      skipHostnameVerification: bool({
        names: bothNames('KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION'),
        default: false,
        doc: "Accept a store's certificate for another host name",
      }),
    },
    closeOnReadonlyError: bool({
      names: bothNames('KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR'),
      default: false,
      doc: 'Close a connection on which a command failed because the store is a read-only replica',
    }),
    startup: {
      initialIntervalMs: duration({
        names: bothNames('KVSTORE_STARTUP_INITIAL_INTERVAL'),
        default: 1_000,
        min: 1,
        doc: 'The first wait between attempts to connect at start; later ones are random, between this and a bound that doubles each time',
      }),
      maxIntervalMs: duration({
        names: bothNames('KVSTORE_STARTUP_MAX_INTERVAL'),
        default: 1_500,
        min: 1,
        doc: 'The longest wait between attempts, and so until a store that recovered is noticed',
      }),
      maxElapsedMs: duration({
        names: bothNames('KVSTORE_STARTUP_MAX_ELAPSED_TIME'),
        default: 0,
        example: 60_000,
        doc: 'After this long without a connection the start fails; 0: never',
      }),
    },
  };
}

/** The settings of one store, with address and credentials parsed. */
export type StoreSettings = StoreValues & {
  /**
   * Undefined without a valid address; a store in use always has one. The credentials are those of the address, or else
   * of AUTH; a file with credentials is read at each attempt to connect.
   */
  readonly target: StoreTarget | undefined;
};

type StoreValues = GroupValues<ReturnType<typeof storeSettings>>;

export function toStoreSettings<Store extends StoreValues>(
  store: Store,
  environment: Environment,
): Store & StoreSettings {
  return {
    ...store,
    cloudIam: withRegion(store.cloudIam, environment),
    target: toTarget(store),
  };
}

/** '' without a setting: the region is then found when a token is signed. */
function withRegion(
  cloudIam: StoreValues['cloudIam'],
  environment: Environment,
): StoreValues['cloudIam'] {
  if (!cloudIam.enabled) return cloudIam;
  const region =
    cloudIam.region || environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'] || '';
  return { ...cloudIam, region };
}

function toTarget(store: StoreValues): StoreTarget | undefined {
  const result = parseStoreTarget(store.url, store.type, store.socketType);
  if (!result.ok) return undefined;
  const { value: target } = result;
  return { ...target, credentials: target.credentials ?? parseCredentials(store.auth) };
}
