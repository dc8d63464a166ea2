// Reads the settings of where the record of rollouts is stored.

import { joinNames, type TableReading } from '../../../shared/settings/parse-settings.ts';
import type { Environment, Setting } from '../../../shared/settings/setting.ts';
import { showGiven } from '../../../shared/settings/shown-value.ts';
import { findApiServer } from '../record/engines/kubernetes-shared-text.ts';
import type { EngineSettings } from '../record/engines/open-engine.ts';
import { parseRecordAddress } from '../record/engines/record-address.ts';
import { controlPlaneTable } from './table.ts';

export interface RecordSettingsReading {
  /** Undefined: the record is stored beside the rules in Git, or in the state directory. */
  readonly settings: EngineSettings | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const rows = controlPlaneTable.record.settings;

export function readRecordSettings(
  reading: TableReading<typeof controlPlaneTable>,
  environment: Environment,
): RecordSettingsReading {
  const { url, name, password, passwordFile, caFile, certFile, keyFile } = reading.values.record;
  const show = (row: Setting<string>): string => {
    const { given } = reading.of(row);
    return given === undefined ? joinNames(row) : showGiven(row, given.name, given.text);
  };
  const listIdle = (reason: string, idle: readonly Setting<string>[]): string[] =>
    idle
      .filter((row) => reading.of(row).given !== undefined)
      .map((row) => `${show(row)} has no effect ${reason}`);
  const { url: urlRow, ...others } = rows;
  if (url === '') {
    const warnings = listIdle(`without ${urlRow.names[0]}`, Object.values(others));
    return { settings: undefined, problems: [], warnings };
  }
  const parsed = parseRecordAddress(url);
  if (!parsed.ok) {
    return { settings: undefined, problems: [`${show(urlRow)}: ${parsed.reason}`], warnings: [] };
  }
  const { address } = parsed;
  if (address.kind === 'kubernetes') {
    const apiServer = findApiServer(environment);
    const warnings = listIdle('with a ConfigMap', Object.values(others));
    if (apiServer !== undefined)
      return { settings: { address, apiServer }, problems: [], warnings };
    const problem = `${show(urlRow)} needs a pod of Kubernetes: KUBERNETES_SERVICE_HOST is not set; name a Redis or an etcd elsewhere`;
    return { settings: undefined, problems: [problem], warnings };
  }
  const isPlain =
    address.kind === 'etcd'
      ? address.endpoints.every(({ protocol }) => protocol === 'http:')
      : !address.isTls;
  const passwords = [parsed.password ?? '', password, passwordFile].filter((each) => each !== '');
  const isUserMissing =
    address.kind === 'etcd' && passwords.length > 0 && address.username === undefined;
  const isPasswordMissing = passwords.length === 0 && address.username !== undefined;
  const problems = [
    ...(/^[\w.-]{1,64}$/.test(name)
      ? []
      : [`${show(rows.name)}: write 1 to 64 letters, digits, dots, hyphens or underscores`]),
    ...(passwords.length > 1
      ? [
          `the password is given more than once: keep one of ${joinNames(rows.password)}, ${joinNames(rows.passwordFile)} and the address in ${joinNames(urlRow)}`,
        ]
      : []),
    ...(isUserMissing
      ? [`${show(urlRow)} has no user: write etcd:https://USER@HOST:2379, as there is a password`]
      : []),
    ...(isPasswordMissing
      ? [`${show(urlRow)} has a user without a password: set ${joinNames(rows.passwordFile)}`]
      : []),
    ...((certFile === '') === (keyFile === '')
      ? []
      : [`${joinNames(rows.certFile)} and ${joinNames(rows.keyFile)} come together: set both`]),
  ];
  const idle = isPlain ? [rows.caFile, rows.certFile, rows.keyFile] : [];
  const warnings = listIdle('without TLS', idle);
  const tls = {
    ca: caFile || undefined,
    cert: certFile || undefined,
    key: keyFile || undefined,
  };
  const access = {
    password: parsed.password ?? password,
    passwordFile: passwordFile || undefined,
    tls,
  };
  return { settings: { address, name, access }, problems, warnings };
}
