// The settings of the control plane: read once from flags and the environment, with all mistakes reported
// at once. settings/table.ts has the rows, server.ts uses the values.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type HostPort, isLoopback, parseHostPort } from '../../shared/host-port.ts';
import {
  joinNames,
  parseSettings,
  type TableReading,
} from '../../shared/settings/parse-settings.ts';
import {
  type Environment,
  type Setting,
  type TableValues,
  toRows,
} from '../../shared/settings/setting.ts';
import { hasCredentials, showGiven } from '../../shared/settings/shown-value.ts';
import { warnUnknownNames } from '../../shared/settings/unknown-name.ts';
import type { TlsFiles } from '../../shared/tls.ts';
import type { EngineSettings } from './record/engines/open-engine.ts';
import { type PeerSource, parsePeers, protocolOf } from './record/peers/peer-list.ts';
import type { PeersSettings } from './record/peers/peers.ts';
import { noSteps } from './record/record.ts';
import { parseRolloutPlan } from './rollout/plan.ts';
import { warnExposure, warnPeerExposure } from './settings/exposure.ts';
import { type NotifySettings, readNotifySettings } from './settings/notify.ts';
import { readRecordSettings } from './settings/record.ts';
import { findSourceUrlProblem } from './settings/source-url.ts';
import { controlPlaneTable } from './settings/table.ts';
import type { StoreSettings } from './store/open-store.ts';
import type { WebhookSettings } from './store/webhook.ts';

/** Variables of commands that call a control plane; see command/admin/admin-options.ts. */
const clientVariables = [
  'RATELANE_ADMIN_URL',
  'RATELANE_ADMIN_CA',
  'RATELANE_ADMIN_TOKEN',
  'RATELANE_ADMIN_TOKEN_FILE',
];

type Values = TableValues<typeof controlPlaneTable>;
type Reading = TableReading<typeof controlPlaneTable>;

/** Unset paths are undefined. */
export interface ListenerSettings {
  readonly address: HostPort;
  readonly tls: TlsFiles | undefined;
  readonly tokensFile: string | undefined;
}

export interface ControlPlaneSettings extends StoreSettings {
  readonly mergeDomains: boolean;
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  /** The steps in which revisions reach the workers; '' where none are given. */
  readonly rollout: string;
  /** Where the record of rollouts is kept; undefined: beside the rules in Git, or in the state directory. */
  readonly record: EngineSettings | undefined;
  /** Undefined: this is the only control plane. */
  readonly peers: PeersSettings | undefined;
  /** Shown to peers in a rollout, and accepted from them; undefined: there is none. */
  readonly peersTokenFile: string | undefined;
  readonly webhook: WebhookSettings;
  readonly notify: NotifySettings;
  readonly xds: ListenerSettings & { readonly maxResponseBytes: number };
  readonly admin: ListenerSettings & {
    /** Only this machine can reach the address. */
    readonly isLoopback: boolean;
  };
  /** URL template of a page that shows a rules file; undefined if not configured. */
  readonly sourceUrl: string | undefined;
  /** A directory that workers record decisions into; undefined: there is none. */
  readonly recordings: string | undefined;
  readonly log: Values['log'];
}

export type ControlPlaneSettingsResult =
  | {
      readonly ok: true;
      readonly settings: ControlPlaneSettings;
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      /** Sentences, the settings named as they were given. */
      readonly problems: readonly string[];
      readonly warnings: readonly string[];
    };

/** `environment` has the flags that were given as well, see settings/flags.ts. `readHome`: the user's home directory; it throws
 * where a container's user has none. */
export function parseControlPlaneSettings(
  environment: Environment,
  readHome: () => string = homedir,
): ControlPlaneSettingsResult {
  const reading = parseSettings(controlPlaneTable, environment);
  const { config, git, xds, admin } = reading.values;
  const rows = {
    git: controlPlaneTable.git.settings,
    xds: controlPlaneTable.xds.settings,
    admin: controlPlaneTable.admin.settings,
    config: controlPlaneTable.config.settings,
  };
  const xdsAddress = readAddress(reading, rows.xds.address);
  const adminAddress = readAddress(reading, rows.admin.address);
  const peerList = config.peers === '' ? undefined : parsePeers(config.peers);
  const peers = peerList?.ok ? toPeers(reading.values, peerList.peers) : undefined;
  const isStepped = config.rollout !== '' && config.rollout !== noSteps;
  const rollout = isStepped ? parseRolloutPlan(config.rollout) : undefined;
  // Its reason quotes a step.
  const rolloutProblem =
    rollout?.ok === false && (hasCredentials(config.rollout) ? 'it has no steps' : rollout.reason);
  const notify = readNotifySettings(reading);
  const record = readRecordSettings(reading, environment);
  const sourceProblem = admin.sourceUrl === '' ? undefined : findSourceUrlProblem(admin.sourceUrl);
  const stateDirectory =
    config.stateDirectory || findStateDirectory(environment, readHome, adminAddress.value);
  const isAdminLoopback = isLoopback(adminAddress.value.host);
  const hasTokens = admin.tokensFile !== '' || config.peersTokenFile !== '';
  const problems = [
    ...reading.problems,
    ...checkSource(reading),
    ...(stateDirectory === undefined
      ? [
          `${joinNames(rows.config.stateDirectory)}: the user has no home directory (HOME), so name a directory for the state`,
        ]
      : []),
    ...(peerList?.ok === false ? [`${show(reading, rows.config.peers)}: ${peerList.reason}`] : []),
    ...(rolloutProblem ? [`${show(reading, rows.config.rollout)}: ${rolloutProblem}`] : []),
    ...(config.directory !== '' && peers && rollout?.ok && reading.values.record.url === ''
      ? [
          `${show(reading, rows.config.rollout)}: the control planes of ${show(reading, rows.config.peers)} cannot agree on a rollout through ${joinNames(rows.config.directory)}: name a place for its record with ${joinNames(controlPlaneTable.record.settings.url)} (redis://, etcd: or kubernetes:), or keep the rules in a repository (${joinNames(rows.git.url)})`,
        ]
      : []),
    ...xdsAddress.problems,
    ...adminAddress.problems,
    ...checkPorts(xdsAddress, adminAddress),
    ...checkTls(reading, rows.xds, rows.xds.clientCaFile),
    ...checkTls(reading, rows.admin, rows.admin.clientCaFile),
    ...checkTls(reading, { certFile: rows.config.peersCert, keyFile: rows.config.peersKey }),
    ...(adminAddress.problems.length === 0 && !isAdminLoopback && !hasTokens
      ? [
          `${show(reading, rows.admin.address)} can be reached from elsewhere, and neither ${joinNames(rows.admin.tokensFile)} nor ${joinNames(rows.config.peersTokenFile)} is set: give a file of tokens, or a loopback address`,
        ]
      : []),
    ...checkSecret(reading, rows.git.webhookSecret, rows.git.webhookSecretFile),
    ...checkSecret(reading, rows.git.password, rows.git.passwordFile),
    ...notify.problems,
    ...record.problems,
    ...(sourceProblem === undefined
      ? []
      : [`${joinNames(rows.admin.sourceUrl)}: ${sourceProblem}`]),
  ];
  const warnings = [
    ...warnUnknown(environment),
    ...reading.warnings,
    ...warnSettings(reading),
    ...record.warnings,
    ...warnPeersTls(reading, peers),
    ...warnExposure(reading, {
      xds: xdsAddress.problems.length === 0 && !isLoopback(xdsAddress.value.host),
      admin: adminAddress.problems.length === 0 && !isAdminLoopback,
    }),
    ...warnPeerExposure(reading, peers),
  ];
  if (problems.length > 0 || stateDirectory === undefined) return { ok: false, problems, warnings };

  const { webhookSecret, webhookSecretFile, ...gitSettings } = git;
  const settings: ControlPlaneSettings = {
    config:
      config.directory === ''
        ? { kind: 'git', ...gitSettings }
        : { kind: 'directory', directory: resolve(config.directory) },
    stateDirectory: resolve(stateDirectory),
    mergeDomains: config.mergeDomains,
    allowsRemoval: config.allowRemoval,
    rollout: config.rollout,
    record: record.settings,
    peers,
    peersTokenFile: config.peersTokenFile || undefined,
    webhook: { secret: webhookSecret, secretFile: webhookSecretFile || undefined },
    notify: notify.settings,
    xds: {
      ...toListener(xds, xdsAddress.value),
      maxResponseBytes: xds.maxResponseBytes,
    },
    admin: { ...toListener(admin, adminAddress.value), isLoopback: isAdminLoopback },
    sourceUrl: admin.sourceUrl || undefined,
    recordings: admin.recordings === '' ? undefined : resolve(admin.recordings),
    log: reading.values.log,
  };
  return { ok: true, settings, warnings };
}

/** The directory for persistent state (XDG base directories), named for the admin address, which no two
 * control planes of a machine share. Undefined where there is no home directory. */
function findStateDirectory(
  environment: Environment,
  readHome: () => string,
  { host, port }: HostPort,
): string | undefined {
  const own = `${host === '' ? 'any' : host.replaceAll(/[^\w.-]/g, '_')}-${port}`;
  const base = environment['XDG_STATE_HOME'];
  if (base) return join(base, 'ratelane', own);
  try {
    const home = readHome();
    return home === '' ? undefined : join(home, '.local', 'state', 'ratelane', own);
  } catch {
    return undefined;
  }
}

function toListener(values: Values['xds'] | Values['admin'], address: HostPort): ListenerSettings {
  const { certFile, keyFile, clientCaFile, tokensFile } = values;
  const tls = { cert: certFile, key: keyFile, ca: clientCaFile || undefined };
  return {
    address,
    tls: certFile === '' ? undefined : tls,
    tokensFile: tokensFile || undefined,
  };
}

/** The control planes of a fleet are alike: where this one's admin port has TLS, those of a name have it too. */
function toPeers({ config, admin }: Values, sources: readonly PeerSource[]): PeersSettings {
  const own = { cert: config.peersCert, key: config.peersKey };
  const pair = own.cert === '' ? { cert: admin.certFile, key: admin.keyFile } : own;
  const tls = {
    ca: config.peersCa || undefined,
    cert: pair.cert || undefined,
    key: pair.key || undefined,
  };
  return {
    sources,
    dnsProtocol: admin.certFile === '' ? 'http:' : 'https:',
    tls: tls.ca === undefined && tls.cert === undefined ? undefined : tls,
  };
}

interface AddressReading {
  readonly row: Setting<string>;
  readonly value: HostPort;
  readonly problems: readonly string[];
}

function readAddress(reading: Reading, row: Setting<string>): AddressReading {
  const result = parseHostPort(reading.of(row).value, 0);
  if (result.ok) return { row, value: result.value, problems: [] };
  const problem = `${show(reading, row)}: ${result.reason}; write host:port such as ${row.default}`;
  return { row, value: { host: '', port: 0 }, problems: [problem] };
}

function checkSource(reading: Reading): string[] {
  const { directory } = controlPlaneTable.config.settings;
  const { url } = controlPlaneTable.git.settings;
  const isDirectory = reading.of(directory).value !== '';
  const isGit = reading.of(url).value !== '';
  if (isDirectory && isGit) {
    return [`${show(reading, directory)} and ${show(reading, url)}: give one of them`];
  }
  if (isDirectory || isGit) return [];
  return [`no rules are named: give ${joinNames(directory)} or ${joinNames(url)}`];
}

function checkPorts(xds: AddressReading, admin: AddressReading): string[] {
  const { port } = xds.value;
  if (port === 0 || port !== admin.value.port) return [];
  const isSame =
    xds.value.host === admin.value.host ||
    [xds, admin].some(({ value }) => ['', '0.0.0.0', '::'].includes(value.host));
  if (!isSame) return [];
  return [`${joinNames(xds.row)} and ${joinNames(admin.row)} have the same port ${port}`];
}

function checkTls(
  reading: Reading,
  { certFile, keyFile }: Pick<typeof controlPlaneTable.xds.settings, 'certFile' | 'keyFile'>,
  ...others: readonly Setting<string>[]
): string[] {
  const isGiven = (row: Setting<string>): boolean => reading.of(row).value !== '';
  const given = [certFile, keyFile, ...others].find(isGiven);
  if (given === undefined) return [];
  return [certFile, keyFile]
    .filter((row) => !isGiven(row))
    .map((row) => `${joinNames(row)} is not set: ${show(reading, given)} needs it`);
}

function checkSecret(reading: Reading, row: Setting<string>, fileRow: Setting<string>): string[] {
  const isBoth = reading.of(row).value !== '' && reading.of(fileRow).value !== '';
  if (!isBoth) return [];
  return [`${joinNames(row)} and ${show(reading, fileRow)} are both set; remove one of them`];
}

function warnSettings(reading: Reading): string[] {
  const { git, admin } = reading.values;
  if (git.url !== '') return [];
  const { sourceUrl } = controlPlaneTable.admin.settings;
  const noCommit = admin.sourceUrl.includes('{revision}')
    ? [
        `${show(reading, sourceUrl)} names {revision}, but revisions of a directory are in no Git host; write the name of a branch`,
      ]
    : [];
  const idle = Object.values(controlPlaneTable.git.settings)
    .filter((row) => reading.of<unknown>(row).given !== undefined)
    .filter((row) => !joinNames(row).includes('WEBHOOK'))
    .map(
      (row) =>
        `${show(reading, row)} has no effect without ${controlPlaneTable.git.settings.url.names[0]}`,
    );
  return [...idle, ...noCommit];
}

function warnPeersTls(reading: Reading, peers: PeersSettings | undefined): string[] {
  const { peersCa, peersCert, peersKey } = controlPlaneTable.config.settings;
  const { sources = [], dnsProtocol = 'http:' } = peers ?? {};
  if (sources.some((source) => protocolOf(source, dnsProtocol) === 'https:')) return [];
  return [peersCa, peersCert, peersKey]
    .filter((row) => reading.of(row).given !== undefined)
    .map((row) => `${show(reading, row)} has no effect: no peer is asked over https`);
}

function warnUnknown(environment: Environment): string[] {
  const known = new Set(toRows(controlPlaneTable).flatMap(({ setting }) => setting.names));
  for (const name of clientVariables) known.add(name);
  const ours = Object.entries(environment).filter(([name]) => name.startsWith('RATELANE_'));
  return warnUnknownNames(Object.fromEntries(ours), known, ['RATELANE_']);
}

/** The setting as given; only its names when it is not given. */
function show(reading: Reading, row: Setting<unknown>): string {
  const { given } = reading.of(row);
  return given === undefined ? joinNames(row) : showGiven(row, given.name, given.text);
}
