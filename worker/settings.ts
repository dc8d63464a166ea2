// The settings of the worker: read from the environment once, with all mistakes reported at once.
// settings/table.ts has the rows; the composition root passes the environment and uses the values.
import { errorText } from '../shared/errors.ts';
import { nameOf, parseSettings, showSetting } from '../shared/settings/parse-settings.ts';
import { type Environment, type TableValues, toRows } from '../shared/settings/setting.ts';
import { maskFile } from '../shared/settings/shown-value.ts';
import { warnUnknownNames } from '../shared/settings/unknown-name.ts';
import { readBeginning } from '../shared/small-file.ts';
import { listClientTlsRows } from './client-tls.ts';
import type { CountingSettings } from './counters/counting-settings.ts';
import { toStoreSettings } from './counters/redis/redis-settings.ts';
import { storeKinds } from './counters/store-kinds.ts';
import { checkSettings, warnSettings } from './settings/checks.ts';
import { toHelp } from './settings/document.ts';
import { type DumpRow, toDump } from './settings/dump.ts';
import { type Mogrifier, type MogrifierReading, readMogrifiers } from './settings/mogrifier.ts';
import { type WorkerReading, workerTable } from './settings/table.ts';
import { readTokenFile } from './token-file.ts';

type Values = TableValues<typeof workerTable>;

/** Durations are in milliseconds; an unset path or address is ''. Deeply frozen. */
export interface WorkerSettings
  extends Omit<Values, 'log' | 'store' | 'perSecondStore' | 'stats'>,
    Pick<CountingSettings, 'store' | 'perSecondStore' | 'givenNames'> {
  readonly log: Omit<Values['log'], 'format'> & { readonly format: 'text' | 'json' };
  readonly stats: Omit<Values['stats'], 'push' | 'tagged'> & {
    readonly push: Omit<Values['stats']['push'], 'enabled'> & { readonly enabled: boolean };
    readonly tagged: Values['stats']['tagged'] & { readonly mogrifiers: readonly Mogrifier[] };
  };
}

export type WorkerSettingsResult =
  | {
      readonly ok: true;
      readonly settings: WorkerSettings;
      /** Names that are probably misspelled, and settings without effect. */
      readonly warnings: readonly string[];
      /** Every setting's value in force and its origin, without secrets, as the debug port shows it. */
      readonly dump: readonly DumpRow[];
      /** Files that must be readable, for `findTlsFileProblems`. */
      readonly tlsFiles: readonly NamedFile[];
      /** The file of the token for management servers, for `findTokenFileProblems`. */
      readonly tokenFiles: readonly NamedFile[];
    }
  | {
      readonly ok: false;
      readonly problems: readonly string[];
      readonly warnings: readonly string[];
    };

/** A file that a setting in effect names. */
export interface NamedFile {
  /** `NAME="path"`, as given. */
  readonly shown: string;
  readonly path: string;
}

/** Prefixes of names that no other program uses; names without them are only compared with known ones. */
const prefixes = [
  'KVSTORE_',
  'REDIS_',
  'MEMSTORE_',
  'MEMCACHE_',
  'PUSHMETRICS_',
  'STATSD_',
  'TAGGED_',
  'DOG_STATSD_',
  'PULLMETRICS_',
  'PROMETHEUS_',
  'CONFIG_GRPC_XDS_',
  'CONFIG_FLEET_',
  'XDS_CLIENT_',
  'GRPC_SERVER_',
  'GRPC_CLIENT_',
  'GRPC_MAX_',
  'LIMIT_RESPONSE_',
  'LIMIT_REQUEST_',
  'LIMIT_PER_UNIT_',
  'LIMIT_RETRY_',
  'LIMIT_RATELIMIT_',
  'LIMIT_PARTITION_',
  'RUNTIME_',
  'TRACING_',
  'RECORD_DECISIONS',
] as const;

/** Envoy Gateway sets the first one, for the CA of clients; the others are names of other programs. */
const usualNames: Readonly<Record<string, string>> = {
  GRPC_SERVER_TLS_CA_CERT: 'GRPC_CLIENT_TLS_CACERT',
  PULLMETRICS_PORT: 'PULLMETRICS_ADDR',
  PROMETHEUS_PORT: 'PROMETHEUS_ADDR',
  ...namesOfOtherClients(['KVSTORE', 'REDIS', 'KVSTORE_PERSECOND', 'REDIS_PERSECOND'], {
    URL: [
      'HOST',
      'HOSTNAME',
      'PORT',
      'ADDR',
      'ADDRESS',
      'URI',
      'DB',
      'DATABASE',
      'NODES',
      'SENTINELS',
    ],
    AUTH: ['PASSWORD', 'PASS', 'USERNAME', 'USER', 'TOKEN'],
    AUTH_FILE: ['PASSWORD_FILE', 'PASS_FILE'],
    SENTINEL_AUTH: ['SENTINEL_PASSWORD', 'SENTINEL_USERNAME'],
    TYPE: ['CLUSTER', 'SENTINEL', 'MODE', 'CLUSTER_MODE'],
    TLS: ['SSL', 'USE_TLS', 'USE_SSL', 'TLS_ENABLED'],
  }),
  ...namesOfOtherClients(['MEMSTORE', 'MEMCACHE'], {
    HOST_PORT: ['HOST', 'PORT', 'URL', 'ADDR', 'ADDRESS', 'SERVERS'],
  }),
};

/** Names of a store's settings in other clients, and our names for them. */
function namesOfOtherClients(
  families: readonly string[],
  usual: Readonly<Record<string, readonly string[]>>,
): Record<string, string> {
  return Object.fromEntries(
    families.flatMap((family) =>
      Object.entries(usual).flatMap(([own, others]) =>
        others.map((other) => [`${family}_${other}`, `${family}_${own}`]),
      ),
    ),
  );
}

export function parseWorkerSettings(environment: Environment): WorkerSettingsResult {
  const reading = parseSettings(workerTable, environment);
  const { disabled, tagged } = reading.values.stats;
  const { mogrifierNames } = workerTable.stats.settings.tagged;
  const mogrifiers = readMogrifiers(
    tagged.mogrifierNames,
    nameOf(reading, mogrifierNames),
    environment,
  );
  const known = new Set([
    ...toRows(workerTable).flatMap(({ setting }) => [...setting.names, ...setting.otherNames]),
    ...mogrifiers.names,
  ]);
  const warnings = [
    ...warnUnknownNames(environment, known, prefixes, usualNames),
    ...reading.warnings,
    ...warnSettings(reading),
  ];
  const problems = [
    ...reading.problems,
    ...checkSettings(reading),
    ...(tagged.enabled && !disabled ? mogrifiers.problems : []),
  ];
  if (problems.length > 0) return { ok: false, problems, warnings };

  const settings = freeze(toSettings(reading, mogrifiers, environment));
  return {
    ok: true,
    settings,
    warnings,
    dump: toDump(workerTable, reading, settings),
    tlsFiles: listTlsFiles(reading),
    tokenFiles: listTokenFiles(reading),
  };
}

/** The settings for the program, from values without problems. */
function toSettings(
  reading: WorkerReading,
  { mogrifiers }: MogrifierReading,
  environment: Environment,
): WorkerSettings {
  const { grpc, log, counting, store, perSecondStore, stats, ...others } = reading.values;
  return {
    ...others,
    givenNames: listGivenNames(reading),
    grpc: {
      ...grpc,
      maxConnectionAgeMs: grpc.maxConnectionAgeMs || undefined,
      maxConnectionAgeGraceMs: grpc.maxConnectionAgeGraceMs || undefined,
    },
    log: { ...log, format: log.format.toLowerCase() === 'json' ? 'json' : 'text' },
    counting: {
      ...counting,
      expirationJitterSeconds: Math.max(0, counting.expirationJitterSeconds),
    },
    store: toStoreSettings(store, environment),
    perSecondStore: {
      ...toStoreSettings(perSecondStore, environment),
      ...(!perSecondStore.enabled && { target: undefined }),
    },
    stats: {
      ...stats,
      // Another output replaces it unless it was set explicitly (behaviour: independent-outputs).
      push: {
        ...stats.push,
        enabled: stats.push.enabled ?? !(stats.tagged.enabled || stats.pull.enabled),
      },
      tagged: { ...stats.tagged, mogrifiers },
    },
  };
}

function listGivenNames(reading: WorkerReading): Record<string, string> {
  return Object.fromEntries(
    toRows(workerTable).flatMap(({ setting }) => {
      const { given } = reading.of(setting);
      return given === undefined ? [] : [[setting.names[0], given.name]];
    }),
  );
}

function listTokenFiles(reading: WorkerReading): NamedFile[] {
  const { config, xds } = reading.values;
  if (config.source !== 'xds' || xds.tokenFile === '') return [];
  const { tokenFile } = workerTable.xds.settings;
  return [{ shown: showSetting(reading, tokenFile), path: xds.tokenFile }];
}

function listTlsFiles(reading: WorkerReading): NamedFile[] {
  const { http, debug, grpc, config, xds, counting } = reading.values;
  const ofHttp = workerTable.http.settings.tls;
  const ofGrpc = workerTable.grpc.settings.tls;
  const ofXds = workerTable.xds.settings.tls;
  const rows = [
    ...(http.tls.enabled || debug.tls.enabled ? [ofHttp.certFile, ofHttp.keyFile] : []),
    ...(grpc.tls.enabled ? [ofGrpc.certFile, ofGrpc.keyFile, ofGrpc.clientCaFile] : []),
    ...(config.source === 'xds' && xds.tls.enabled ? listClientTlsRows(ofXds, xds.tls) : []),
    ...storeKinds[counting.backend].tlsFiles(reading),
  ];
  return rows
    .map((row) => ({ shown: showSetting(reading, row), path: reading.of(row).value }))
    .filter(({ path }) => path !== '');
}

/** One sentence for each file that cannot be read; `readFile` rejects with the reason. */
export async function findTlsFileProblems(
  files: readonly NamedFile[],
  readFile: (path: string) => Promise<unknown> = (path) => readBeginning(path, 0, maskFile(path)),
): Promise<string[]> {
  const found = await Promise.all(
    files.map(({ shown, path }) =>
      readFile(path).then(
        () => [],
        (error: unknown) => [
          `${shown}: the file cannot be read (${errorText(error)}); name a PEM file that this process may read`,
        ],
      ),
    ),
  );
  return found.flat();
}

/** One sentence for each file without a valid token. */
export async function findTokenFileProblems(files: readonly NamedFile[]): Promise<string[]> {
  const found = await Promise.all(
    files.map(async ({ shown, path }) => {
      const reading = await readTokenFile(path);
      if (reading.ok) return [];
      return [`${shown}: the file ${reading.problem}; name a file with the token and nothing else`];
    }),
  );
  return found.flat();
}

/** The text of `--help` about settings. */
export function describeWorkerSettings(): string {
  return toHelp(workerTable);
}

function freeze<T extends object>(object: T): T {
  for (const value of Object.values(object)) {
    if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) freeze(value);
  }
  return Object.freeze(object);
}
