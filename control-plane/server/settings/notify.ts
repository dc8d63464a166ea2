// The settings of notifications about outcomes of revisions, and problems in them.
import { joinNames, type TableReading } from '../../../shared/settings/parse-settings.ts';
import type { Setting } from '../../../shared/settings/setting.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import { controlPlaneTable } from './table.ts';

export interface NotifySettings {
  /** Undefined: outcomes are not sent. */
  readonly url: URL | undefined;
  readonly secretFile: string | undefined;
  /** Undefined: commits get no status. */
  readonly commitStatus: { readonly url: URL; readonly tokenFile: string } | undefined;
  /** The address of this control plane for users, without a trailing slash. */
  readonly publicUrl: string | undefined;
}

type Reading = TableReading<typeof controlPlaneTable>;

/** `problems` do not quote addresses: they may be secrets. */
export function readNotifySettings(reading: Reading): {
  readonly settings: NotifySettings;
  readonly problems: readonly string[];
} {
  const rows = controlPlaneTable.notify.settings;
  const values = reading.values.notify;
  const isGit = reading.values.git.url !== '';
  const problems: string[] = [];

  function readUrl(row: Setting<string>): URL | undefined {
    const { value } = reading.of(row);
    if (value === '') return undefined;
    const url = URL.parse(value);
    if (url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === '') {
      return url;
    }
    problems.push(
      `${joinNames(row)} cannot be used: write http://host/path or https://host/path, without a user name`,
    );
    return undefined;
  }

  const needs = (row: Setting<string>, other: Setting<string>) => {
    if (reading.of(row).value === '' || reading.of(other).value !== '') return;
    problems.push(`${joinNames(other)} is not set: ${joinNames(row)} needs it`);
  };
  needs(rows.secretFile, rows.url);
  needs(rows.statusUrl, rows.statusTokenFile);
  needs(rows.statusTokenFile, rows.statusUrl);
  if (values.statusUrl !== '' && !isGit) {
    needs(rows.statusUrl, controlPlaneTable.git.settings.url);
  }
  const url = readUrl(rows.url);
  const statusUrl = readUrl(rows.statusUrl);
  const publicUrl = readUrl(rows.publicUrl);
  const { secretFile, statusTokenFile: tokenFile } = values;
  return {
    problems,
    settings: {
      url,
      secretFile: secretFile || undefined,
      commitStatus: statusUrl && { url: statusUrl, tokenFile },
      publicUrl: publicUrl && trimEnd(publicUrl.href, '/'),
    },
  };
}
