// Checks between settings of the worker, and for unsupported values. Each check returns sentences that name the
// settings as they were given. Settings of disabled features never prevent a start.
import { dirname, normalize } from 'node:path';
import { isHost, parseHostPort } from '../../shared/host-port.ts';
import { joinNames, nameOf, showSetting } from '../../shared/settings/parse-settings.ts';
import type { Setting } from '../../shared/settings/setting.ts';
import { warnHalfPair, warnUnencrypted } from '../client-tls.ts';
import { warnIdleStoreSettings } from '../counters/redis/redis-checks.ts';
import { storeKinds } from '../counters/store-kinds.ts';
import { parseServerAddresses } from './server-addresses.ts';
import { type WorkerReading, workerTable } from './table.ts';

export function checkSettings(reading: WorkerReading): string[] {
  return [
    ...checkProcesses(reading),
    ...checkXds(reading),
    ...checkGrpcTls(reading),
    ...checkHttpTls(reading),
    ...checkListeners(reading),
    ...checkHeaders(reading),
    ...storeKinds[reading.values.counting.backend].check(reading),
    ...checkPush(reading),
    ...checkPull(reading),
    ...checkRecording(reading),
  ];
}

/** Warns of settings that are valid but certainly not intended. */
export function warnSettings(reading: WorkerReading): string[] {
  const { log, grpc, limits, counting } = reading.values;
  const { format } = workerTable.log.settings;
  const { tls } = workerTable.grpc.settings;
  const warnings: string[] = [];
  if (!/^(text|json|)$/i.test(log.format)) {
    warnings.push(`${showSetting(reading, format)} is read as text; the other format is json`);
  }
  for (const row of [tls.clientCaFile, tls.clientSan]) {
    if (grpc.tls.enabled || reading.of(row).value === '') continue;
    warnings.push(
      `${showSetting(reading, row)} has no effect without ${joinNames(tls.enabled)}=true: clients are not checked`,
    );
  }
  if (limits.nearLimitRatio > 1) {
    const shown = showSetting(reading, workerTable.limits.settings.nearLimitRatio);
    warnings.push(`${shown} is above 1: no hits count as near their limit`);
  }
  if (limits.shadowMode) {
    const shown = showSetting(reading, workerTable.limits.settings.shadowMode);
    warnings.push(`${shown}: no request is ever refused, whatever the limits are`);
  }
  if (!storeKinds[counting.backend].needsServer) {
    const shown = showSetting(reading, workerTable.counting.settings.backend);
    const { failureMode } = workerTable.counting.settings;
    if (counting.failureMode !== 'error') {
      warnings.push(`${showSetting(reading, failureMode)} has no effect with ${shown}`);
    }
  }
  return [
    ...warnings,
    ...warnDebugPort(reading),
    ...warnIdleStoreSettings(reading),
    ...storeKinds[counting.backend].warn(reading),
    ...warnStopAtLimit(reading),
    ...warnXds(reading),
  ];
}

function warnStopAtLimit(reading: WorkerReading): string[] {
  const { limits, counting } = reading.values;
  const { countsBeforeAnswer } = storeKinds[counting.backend];
  if (limits.stopIncrementWhenOverLimit === 'false') return [];
  const shown = showSetting(reading, workerTable.limits.settings.stopIncrementWhenOverLimit);
  if (countsBeforeAnswer) {
    const { shadowMode, quotaMode } = workerTable.limits.settings;
    const mode = limits.shadowMode ? shadowMode : limits.quotaMode ? quotaMode : undefined;
    if (mode === undefined || limits.stopIncrementWhenOverLimit === 'enforced') return [];
    return [
      `${shown} with ${showSetting(reading, mode)}: a rule that is over its limit but refuses nothing prevents the other descriptors of its requests from being counted; write enforced`,
    ];
  }
  const backend = showSetting(reading, workerTable.counting.settings.backend);
  return [`${shown} has no effect with ${backend}`];
}

/**
 * The default address can be reached from everywhere, as in the reference. A chosen address, or TLS, needs no warning.
 */
function warnDebugPort(reading: WorkerReading): string[] {
  const { debug } = reading.values;
  const { host } = workerTable.debug.settings;
  if (reading.of(host).given !== undefined || debug.tls.enabled) return [];
  return [
    `${joinNames(host)} is not set: anyone who can reach port ${debug.port} can read rules, settings and profiles; write 127.0.0.1 to shut others out, or ${debug.host} if that is intended`,
  ];
}

function checkProcesses(reading: WorkerReading): string[] {
  const { processes, counting } = reading.values;
  if (processes.count === 1 || storeKinds[counting.backend].isShared) return [];
  const count = showSetting(reading, workerTable.processes.settings.count);
  const backend = showSetting(reading, workerTable.counting.settings.backend);
  return [
    `${count} cannot be combined with ${backend}: each process would count by itself; write 1, or choose a store that the processes share`,
  ];
}

/** Hashes without a secret could be reversed by trying the likely values. */
function checkRecording(reading: WorkerReading): string[] {
  const { path, hashedKeys, hashKey } = reading.values.recording;
  if (path === '' || hashedKeys.length === 0 || hashKey !== '') return [];
  const rows = workerTable.recording.settings;
  return [
    `${joinNames(rows.hashKey)} is not set: ${showSetting(reading, rows.hashedKeys)} needs a secret, such as the output of openssl rand -hex 32`,
  ];
}

/** Checks for settings of a management server that cannot work. */
function checkXds(reading: WorkerReading): string[] {
  const { config, xds } = reading.values;
  if (config.source !== 'xds') return [];
  const rows = workerTable.xds.settings;
  const problems: string[] = [];
  const servers = parseServerAddresses(xds.serverUrl);
  if (servers.addresses.length === 0) {
    const shown = showSetting(reading, rows.serverUrl);
    const reasons = xds.serverUrl === '' ? 'empty' : servers.problems.join(', ');
    problems.push(`${shown}: ${reasons}; write the address of the server such as localhost:18000`);
  }
  const shown = showSetting(reading, rows.additionalHeaders);
  const givesToken = Object.keys(xds.additionalHeaders).some(
    (name) => name.toLowerCase() === 'authorization',
  );
  if (givesToken && xds.tokenFile !== '') {
    const names = `${nameOf(reading, rows.additionalHeaders)} and ${nameOf(reading, rows.tokenFile)}`;
    problems.push(`${names} both give the header authorization; remove one of them`);
  }
  for (const [index, [name, value]] of Object.entries(xds.additionalHeaders).entries()) {
    if (!/^[\w.-]+$/.test(name)) {
      problems.push(
        `${shown}: the name of header ${index + 1} has a character that is not a letter, a digit, ".", "-" or "_"`,
      );
    } else if (!name.toLowerCase().endsWith('-bin') && !/^[ -~]*$/.test(value)) {
      problems.push(
        `${shown}: the value of header ${index + 1} has characters that a header cannot have; remove them`,
      );
    }
  }
  return problems;
}

/** Warns of settings of a management server without effect. */
function warnXds(reading: WorkerReading): string[] {
  if (reading.values.config.source !== 'xds') return [];
  return [...warnServers(reading), ...warnXdsTls(reading)];
}

/** Warns of invalid addresses, which are left out if others are valid. */
function warnServers(reading: WorkerReading): string[] {
  const { addresses, problems } = parseServerAddresses(reading.values.xds.serverUrl);
  if (addresses.length === 0) return [];
  const shown = showSetting(reading, workerTable.xds.settings.serverUrl);
  return problems.map(
    (problem) =>
      `${shown}: ${problem}; it is ignored, the others are used; write an address such as localhost:18000`,
  );
}

function warnXdsTls(reading: WorkerReading): string[] {
  const rows = workerTable.xds.settings.tls;
  if (reading.values.xds.tls.enabled) return warnHalfPair(reading, rows);
  const { enabled, certFile, keyFile, caFile, san } = rows;
  return warnUnencrypted(reading, [certFile, keyFile, caFile, san], enabled);
}

function checkGrpcTls(reading: WorkerReading): string[] {
  const { tls } = reading.values.grpc;
  if (!tls.enabled) return [];
  const rows = workerTable.grpc.settings.tls;
  const problems = [rows.certFile, rows.keyFile]
    .filter((row) => reading.of(row).value === '')
    .map(
      (row) =>
        `${joinNames(row)} is not set: ${showSetting(reading, rows.enabled)} needs the path of a file`,
    );
  const isPair = tls.certFile !== '' && tls.keyFile !== '';
  if (isPair && directoryOf(tls.certFile) !== directoryOf(tls.keyFile)) {
    const both = `${showSetting(reading, rows.certFile)} and ${showSetting(reading, rows.keyFile)}`;
    problems.push(
      `${both}: certFile and keyFile must be in the same directory; move one of the files`,
    );
  }
  if (tls.clientSan !== '' && tls.clientCaFile === '') {
    const shown = showSetting(reading, rows.clientSan);
    problems.push(
      `${joinNames(rows.clientCaFile)} is not set: ${shown} needs the CA of client certificates`,
    );
  }
  return problems;
}

/** Returns the same directory for `tls/key.pem` and `./tls//key.pem`. */
function directoryOf(path: string): string {
  return dirname(normalize(path));
}

function checkHttpTls(reading: WorkerReading): string[] {
  const rows = workerTable.http.settings.tls;
  const switches = [rows.enabled, workerTable.debug.settings.tls.enabled];
  const on = switches.find((row) => reading.of(row).value);
  if (on === undefined) return [];
  return [rows.certFile, rows.keyFile]
    .filter((row) => reading.of(row).value === '')
    .map(
      (row) => `${joinNames(row)} is not set: ${showSetting(reading, on)} needs the path of a file`,
    );
}

interface Listener {
  readonly row: Setting<unknown>;
  readonly host: string;
  readonly port: number;
}

/** A wildcard host occupies the port on every host. */
function checkListeners(reading: WorkerReading): string[] {
  const { http, grpc, debug, stats } = reading.values;
  const pull = parseHostPort(stats.pull.address, 0);
  const listeners: Listener[] = [
    { row: workerTable.http.settings.port, ...http },
    ...(grpc.uds === '' ? [{ row: workerTable.grpc.settings.port, ...grpc }] : []),
    { row: workerTable.debug.settings.port, ...debug },
    ...(stats.pull.enabled && !stats.disabled && pull.ok
      ? [{ row: workerTable.stats.settings.pull.address, ...pull.value }]
      : []),
  ];
  const { host } = workerTable.http.settings;
  const hosts = [
    ...[host, workerTable.debug.settings.host],
    ...(grpc.uds === '' ? [workerTable.grpc.settings.host] : []),
  ];
  const invalid = hosts
    .filter((row) => !isHost(reading.of(row).value))
    .map(
      (row) =>
        `${nameOf(reading, row)}: the host has an invalid character; write a host such as ${row.default}`,
    );
  const read = listeners.filter(({ row }) => reading.of(row).problems.length === 0);
  const doubled = read.flatMap((one, index) =>
    read.slice(index + 1).flatMap((other) => {
      const overlap = one.host === other.host || isWildcard(one.host) || isWildcard(other.host);
      if (one.port === 0 || one.port !== other.port || !overlap) return [];
      const names = `${nameOf(reading, one.row)} and ${nameOf(reading, other.row)}`;
      return [`${names} are both ${one.port}: each listener needs a port of its own`];
    }),
  );
  return [...invalid, ...doubled];
}

function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::';
}

function checkHeaders(reading: WorkerReading): string[] {
  const { response, request } = reading.values.headers;
  const rows = workerTable.headers.settings;
  const used = [
    ...(response.enabled || response.perUnit
      ? [rows.response.limit, rows.response.remaining, rows.response.reset]
      : []),
    ...(request.enabled ? [rows.request.limit, rows.request.remaining, rows.request.reset] : []),
  ];
  return used
    .filter((row) => !/^[\w!#$%&'*+.^`|~-]+$/.test(reading.of(row).value))
    .map(
      (row) =>
        `${showSetting(reading, row)}: not the name of a header; write a name such as ${row.default}`,
    );
}

/** Checks the host, which errors of the network would quote. */
function checkPush(reading: WorkerReading): string[] {
  const { disabled, push, tagged } = reading.values.stats;
  if (disabled || isHost(push.host) || !((push.enabled ?? true) || tagged.enabled)) return [];
  const { host } = workerTable.stats.settings.push;
  return [
    `${nameOf(reading, host)}: the host has an invalid character; write a host such as localhost`,
  ];
}

function checkPull(reading: WorkerReading): string[] {
  const { disabled, pull } = reading.values.stats;
  if (disabled || !pull.enabled) return [];
  const { address, path } = pull;
  const rows = workerTable.stats.settings.pull;
  const problems: string[] = [];
  const result = parseHostPort(address, 0);
  if (!result.ok) {
    const shown = showSetting(reading, rows.address);
    problems.push(`${shown}: ${result.reason}; write host:port or :port such as :9090`);
  }
  if (!path.startsWith('/')) {
    const shown = showSetting(reading, rows.path);
    problems.push(`${shown}: the path does not begin with /; write a path such as /metrics`);
  }
  return problems;
}
