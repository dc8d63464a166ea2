// TLS with the servers that the worker calls, stores and management servers: what its settings mean.
import { joinNames, showSetting, type TableReading } from '../shared/settings/parse-settings.ts';
import type { GroupValues, Setting, SettingsTable } from '../shared/settings/setting.ts';
import type { TlsFiles } from '../shared/tls.ts';

export interface ClientTlsRows {
  readonly certFile: Setting<string>;
  readonly keyFile: Setting<string>;
  readonly caFile: Setting<string>;
}

type Values = GroupValues<ClientTlsRows>;
type Reading = Pick<TableReading<SettingsTable>, 'of'>;

export interface ClientTlsOptions {
  readonly files: TlsFiles;
  /** A certificate for another host name is accepted; its authority is still checked. */
  readonly skipHostnameVerification: boolean;
}

/** A certificate or a key alone has no effect. */
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

/** The rows of the files that are used; one that is not given may be among them. */
export function listClientTlsRows(rows: ClientTlsRows, values: Values): Setting<string>[] {
  return [rows.caFile, ...(hasPair(values) ? [rows.certFile, rows.keyFile] : [])];
}

export function warnHalfPair(reading: Reading, { certFile, keyFile }: ClientTlsRows): string[] {
  const [given, ...more] = listGiven(reading, [certFile, keyFile]);
  if (given === undefined || more.length > 0) return [];
  const missing = given === certFile ? keyFile : certFile;
  return [`${showSetting(reading, given)} has no effect without ${joinNames(missing)}`];
}

/** For a connection without TLS, which `enabled` would switch on. */
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
