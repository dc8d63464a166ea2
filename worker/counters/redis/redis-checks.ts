// Checks between the settings of the key-value stores, and of their addresses. They run when hits are counted in such
// stores, except warnIdleStoreSettings.
import { joinNames, nameOf, showSetting } from '../../../shared/settings/parse-settings.ts';
import type { Setting } from '../../../shared/settings/setting.ts';
import { listClientTlsRows, warnHalfPair, warnUnencrypted } from '../../client-tls.ts';
import type { CountingReading } from '../counting-settings.ts';
import { parseStoreTarget } from './address.ts';

/** Human-readable sentences about mistakes that prevent the use of the stores. */
export function checkKeyValueStores(reading: CountingReading): string[] {
  return [...checkAddresses(reading), ...checkCredentials(reading), ...checkCloudIam(reading)];
}

/** Human-readable sentences about settings without effect. */
export function warnKeyValueStores(reading: CountingReading): string[] {
  return [...warnTls(reading), ...warnCloudIam(reading)];
}

/** Sentences about settings that have no effect, whichever store counts hits. */
export function warnIdleStoreSettings(reading: CountingReading): string[] {
  return [...warnCredentials(reading), ...warnSentinels(reading)];
}

function warnSentinels(reading: CountingReading): string[] {
  return (['store', 'perSecondStore'] as const).flatMap((which) => {
    const { type, sentinelAuth } = reading.values[which];
    if (type === 'sentinel' || sentinelAuth === '') return [];
    const rows = reading.table[which].settings;
    const shown = showSetting(reading, rows.sentinelAuth);
    return [`${shown} has no effect without ${joinNames(rows.type)}=sentinel`];
  });
}

function checkAddresses(reading: CountingReading): string[] {
  const { perSecondStore } = reading.values;
  const { backend } = reading.table.counting.settings;
  // It is then unknown where hits are to be counted.
  if (reading.of(backend).problems.length > 0) return [];
  const main = checkStore(
    reading,
    'store',
    `write the address of the store such as localhost:6379, or ${joinNames(backend)}=memory to count inside this process`,
  );
  if (!perSecondStore.enabled) return main;
  const { enabled } = reading.table.perSecondStore.settings;
  const why = `${showSetting(reading, enabled)} needs the address of a second store such as localhost:6380`;
  return [...main, ...checkStore(reading, 'perSecondStore', why)];
}

function checkStore(
  reading: CountingReading,
  which: 'store' | 'perSecondStore',
  withoutUrl: string,
): string[] {
  const store = reading.values[which];
  const rows = reading.table[which].settings;
  const problems: string[] = [];

  const typeIsKnown = reading.of(rows.type).problems.length === 0;
  if (reading.of(rows.url).problems.length > 0 || !typeIsKnown) return problems;
  if (store.url === '') return [...problems, `${joinNames(rows.url)} is not set: ${withoutUrl}`];
  const target = parseStoreTarget(store.url, store.type, store.socketType);
  if (!target.ok) {
    const cures = {
      auth: `the password, or user:password, in ${nameLike(reading, rows.url, rows.auth)}`,
      type: `${nameLike(reading, rows.url, rows.type)}=cluster, or =sentinel with the name of the master before the addresses`,
    };
    const cure =
      target.belongsTo === undefined ? addressForms[store.type] : cures[target.belongsTo];
    problems.push(`${showSetting(reading, rows.url)}: ${target.reason}; write ${cure}`);
  }
  return problems;
}

/** The name of `other` in the same family of names as the one by which `row` was given. */
function nameLike(
  reading: CountingReading,
  row: Setting<unknown>,
  other: Setting<unknown>,
): string {
  const index = row.names.indexOf(reading.of(row).given?.name ?? '');
  return other.names[index] ?? other.names[0];
}

/** How addresses are written, for each type. */
const addressForms = {
  single:
    'host:port such as localhost:6379, redis://user:password@host:port or the path of a unix socket',
  sentinel: 'such as mymaster,sentinel-1:26379,sentinel-2:26379',
  cluster: 'such as node-1:6379,node-2:6379',
} as const;

function checkCloudIam(reading: CountingReading): string[] {
  return listStores(reading).flatMap((which) => {
    const store = reading.values[which];
    const rows = reading.table[which].settings;
    const { cacheName, userId, enabled } = rows.cloudIam;
    if (!store.cloudIam.enabled) return [];
    const why = `${showSetting(reading, enabled)} needs`;
    const problems: string[] = [];
    if (store.cloudIam.cacheName === '') {
      problems.push(
        `${joinNames(cacheName)} is not set: ${why} the name of the serverless cache or the id of the replication group`,
      );
    }
    if (store.cloudIam.userId === '') {
      problems.push(`${joinNames(userId)} is not set: ${why} the user to connect as`);
    }
    const target = parseStoreTarget(store.url, store.type, store.socketType);
    const hasCredentials = target.ok && target.value.credentials !== undefined;
    const others = [
      ...[rows.auth, rows.authFile].filter((row) => reading.of(row).value !== ''),
      ...(hasCredentials ? [rows.url] : []),
    ];
    for (const row of others) {
      problems.push(
        `${nameOf(reading, enabled)} and ${nameOf(reading, row)} both set how to authenticate; remove one of them`,
      );
    }
    return problems;
  });
}

/** Tokens are sent in clear text without TLS. */
function warnCloudIam(reading: CountingReading): string[] {
  return listStores(reading).flatMap((which) => {
    const { cloudIam, tls, url } = reading.values[which];
    if (!cloudIam.enabled || tls || /(^|,)rediss:/i.test(url)) return [];
    const rows = reading.table[which].settings;
    const shown = showSetting(reading, rows.cloudIam.enabled);
    return [
      `${shown}: tokens travel unencrypted without ${joinNames(rows.tls)}=true, unless a proxy in between adds TLS`,
    ];
  });
}

/** The stores that are used. */
function listStores({ values }: CountingReading): ('store' | 'perSecondStore')[] {
  return values.perSecondStore.enabled ? ['store', 'perSecondStore'] : ['store'];
}

function checkCredentials(reading: CountingReading): string[] {
  return listStores(reading).flatMap((which) => {
    const rows = reading.table[which].settings;
    if (reading.of(rows.auth).value === '' || reading.of(rows.authFile).value === '') return [];
    const names = `${nameOf(reading, rows.auth)} and ${nameOf(reading, rows.authFile)}`;
    return [`${names} are both given; remove one of them`];
  });
}

function warnCredentials(reading: CountingReading): string[] {
  return (['store', 'perSecondStore'] as const).flatMap((which) => {
    const rows = reading.table[which].settings;
    const { url, type, socketType } = reading.values[which];
    const target = parseStoreTarget(url, type, socketType);
    if (!target.ok || target.value.credentials === undefined) return [];
    return [rows.auth, rows.authFile]
      .filter((row) => reading.of(row).value !== '')
      .map(
        (row) =>
          `${showSetting(reading, row)} has no effect: ${nameOf(reading, rows.url)} holds credentials`,
      );
  });
}

/** Whether TLS is used with any of the key-value stores. */
function usesTls(reading: CountingReading): boolean {
  const { values } = reading;
  return listStores(reading).some(
    (which) => values[which].tls || /(^|,)rediss:/i.test(values[which].url),
  );
}

/** Warns of TLS files without effect. */
function warnTls(reading: CountingReading): string[] {
  const rows = reading.table.bothStores.settings.tls;
  if (usesTls(reading)) return warnHalfPair(reading, rows);
  const files = [rows.certFile, rows.keyFile, rows.caFile];
  return warnUnencrypted(reading, files, reading.table.store.settings.tls);
}

/** The settings of files that TLS with the stores needs. */
export function listStoreTlsFiles(reading: CountingReading): Setting<string>[] {
  if (!usesTls(reading)) return [];
  return listClientTlsRows(reading.table.bothStores.settings.tls, reading.values.bothStores.tls);
}
