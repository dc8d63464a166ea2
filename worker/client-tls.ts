// TLS with the servers that the worker calls (stores and management servers): the meaning of its settings, and the
// expiry of its certificates.
import type { Clock } from '../shared/clock.ts';
import { joinNames, showSetting, type TableReading } from '../shared/settings/parse-settings.ts';
import type { GroupValues, Setting, SettingsTable } from '../shared/settings/setting.ts';
import { findExpiryMs, readTlsFiles, type TlsFiles } from '../shared/tls.ts';
import type { Metrics } from './metrics.ts';

export interface ClientTlsRows {
  readonly certFile: Setting<string>;
  readonly keyFile: Setting<string>;
  readonly caFile: Setting<string>;
}

type Values = GroupValues<ClientTlsRows>;
type Reading = Pick<TableReading<SettingsTable>, 'of'>;

export interface ClientTlsOptions {
  readonly files: TlsFiles;
  /** A certificate for another host name is accepted; its CA is still checked. */
  readonly skipHostnameVerification: boolean;
}

/** Whether both are set: a certificate or a key alone has no effect. */
function hasPair({ certFile, keyFile }: Values): boolean {
  return certFile !== '' && keyFile !== '';
}

export function toClientTlsFiles(values: Values): TlsFiles {
  const { certFile, keyFile, caFile } = values;
  const pair = hasPair(values) ? { cert: certFile, key: keyFile } : {};
  return { ca: caFile || undefined, cert: undefined, key: undefined, ...pair };
}

export function toClientTls(
  values: Values & Pick<ClientTlsOptions, 'skipHostnameVerification'>,
): ClientTlsOptions {
  const { skipHostnameVerification } = values;
  return { files: toClientTlsFiles(values), skipHostnameVerification };
}

/** The settings of all files that TLS needs, including those that were not given. */
export function listClientTlsRows(rows: ClientTlsRows, values: Values): Setting<string>[] {
  return [rows.caFile, ...(hasPair(values) ? [rows.certFile, rows.keyFile] : [])];
}

export function warnHalfPair(reading: Reading, { certFile, keyFile }: ClientTlsRows): string[] {
  const [given, ...more] = listGiven(reading, [certFile, keyFile]);
  if (given === undefined || more.length > 0) return [];
  const missing = given === certFile ? keyFile : certFile;
  return [`${showSetting(reading, given)} has no effect without ${joinNames(missing)}`];
}

/** Warns about a connection without TLS, which `enabled` would switch on. */
export function warnUnencrypted(
  reading: Reading,
  rows: readonly Setting<string>[],
  enabled: Setting<boolean>,
): string[] {
  const reason = `without ${joinNames(enabled)}=true: the connection is not encrypted`;
  return listGiven(reading, rows).map(
    (row) => `${showSetting(reading, row)} has no effect ${reason}`,
  );
}

function listGiven(reading: Reading, rows: readonly Setting<string>[]): Setting<string>[] {
  return rows.filter((row) => reading.of(row).value !== '');
}

/** The servers that receive a certificate: the part of the gauge's name, and the name in texts. */
const callees = {
  store: 'the store',
  per_second_store: 'the store for limits per second',
  xds: 'management servers',
} as const;

type Callee = keyof typeof callees;

/** The files are read again at most this often. */
const rereadMs = 30_000;

/**
 * Maintains a gauge of when the certificate in the files expires. Connections read the files themselves, so it is the
 * certificate of the next connection. The files are read only while the statistics are; the first value after a renewal
 * may still be the previous one.
 */
export function measureExpiry(
  callee: Callee,
  files: TlsFiles,
  { metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock },
): void {
  if (files.cert === undefined) return;
  const expiry = metrics.gauge(gaugeOf(callee));
  let readMs = Number.NEGATIVE_INFINITY;
  async function readAgain(): Promise<void> {
    const reading = await readTlsFiles(files);
    if (reading.ok) expiry.set((findExpiryMs(reading.material) ?? 0) / 1000);
  }
  metrics.beforeReading(() => {
    if (clock.monotonicMs() - readMs < rereadMs) return;
    readMs = clock.monotonicMs();
    void readAgain();
  });
}

/** Human-readable, one line for each certificate. */
export function describeExpiries(stats: ReadonlyMap<string, number>): readonly string[] {
  return Object.entries(callees).flatMap(([callee, shown]) => {
    const seconds = stats.get(gaugeOf(callee as Callee));
    if (!seconds) return [];
    return [
      `client certificate for ${shown}: valid until ${new Date(seconds * 1000).toISOString()}`,
    ];
  });
}

function gaugeOf(callee: Callee): string {
  return `ratelimit.certificate.${callee}.not_after_timestamp_seconds`;
}
