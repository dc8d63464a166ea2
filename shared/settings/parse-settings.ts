// Reads the rows of a table from an environment: defaults, alternative names, and all problems at once. The program
// that owns the table checks constraints between settings.
import { isDeepStrictEqual } from 'node:util';
import {
  type Environment,
  isSetting,
  type Setting,
  type SettingGroup,
  type SettingsTable,
  type TableValues,
  toRows,
} from './setting.ts';
import { showGiven } from './shown-value.ts';

/** One setting, read from an environment. */
export interface SettingReading<T> {
  /** The default when the setting is not given or invalid. */
  readonly value: T;
  /** The names and texts that were given, the preferred name first; undefined for a default. */
  readonly given: { readonly name: string; readonly text: string } | undefined;
  /** Human-readable sentences; empty when the setting is valid. */
  readonly problems: readonly string[];
}

/** All settings of a table, read from an environment. */
export interface TableReading<T extends SettingsTable> {
  readonly table: T;
  readonly values: TableValues<T>;
  readonly problems: readonly string[];
  /** Lines about settings that were given but have no effect. */
  readonly warnings: readonly string[];
  /** The reading of a row of the table, which is found by identity. */
  of<V>(setting: Setting<V>): SettingReading<V>;
}

/** `A/B`: all names of a setting, for messages about one that is not given. */
export function joinNames(setting: Setting<unknown>): string {
  return setting.names.join('/');
}

/** The name by which a setting was given; if it was not, all its names. */
export function nameOf(
  reading: Pick<TableReading<SettingsTable>, 'of'>,
  setting: Setting<unknown>,
): string {
  return reading.of(setting).given?.name ?? joinNames(setting);
}

/** `NAME="text"` as given; only the names of a setting that was not given. */
export function showSetting(
  reading: Pick<TableReading<SettingsTable>, 'of'>,
  setting: Setting<unknown>,
): string {
  const { given } = reading.of(setting);
  return given === undefined ? joinNames(setting) : showGiven(setting, given.name, given.text);
}

/** Several names of one setting may be given together if they have the same value (behaviour: two-names). */
export function readSetting<V>(setting: Setting<V>, environment: Environment): SettingReading<V> {
  const given = [...setting.names, ...setting.otherNames].flatMap((name) => {
    const text = environment[name];
    if (text === undefined || isInjected(setting, name, text)) return [];
    return [{ name, text, result: setting.parse(text) }];
  });
  const [first] = given;
  if (first === undefined) return { value: setting.default, given: undefined, problems: [] };

  const problems = given.flatMap(({ name, text, result }) =>
    result.ok
      ? []
      : [`${showGiven(setting, name, text)}: ${result.reason}; write ${setting.accepts}`],
  );
  const other = given.find(({ result }) => !isDeepStrictEqual(result, first.result));
  if (problems.length === 0 && other !== undefined) {
    const both =
      setting.secret === 'no'
        ? `${showGiven(setting, first.name, first.text)} and ${showGiven(setting, other.name, other.text)}`
        : `${first.name} and ${other.name}`;
    problems.push(`${both} are two names of one setting with different values; remove one of them`);
  }
  const value = problems.length === 0 && first.result.ok ? first.result.value : setting.default;
  return { value, given: { name: first.name, text: first.text }, problems };
}

/**
 * Kubernetes sets `<SERVICE>_PORT=tcp://<address>:<port>` in every container for each service of its namespace, so that
 * a service called statsd would appear as an invalid setting.
 */
function isInjected(setting: Setting<unknown>, name: string, text: string): boolean {
  return setting.kind === 'int' && isServiceLink(name, text);
}

/** Whether this is probably a variable that Kubernetes made for a service. */
export function isServiceLink(name: string, text: string): boolean {
  return (
    /_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) ||
    (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\/[\da-f.:[\]]+:\d+$/i.test(text))
  );
}

export function parseSettings<T extends SettingsTable>(
  table: T,
  environment: Environment,
): TableReading<T> {
  const readings = new Map(
    toRows(table).map(({ setting }) => [setting, readSetting(setting, environment)]),
  );
  const of = <V>(setting: Setting<V>): SettingReading<V> => {
    const reading = readings.get(setting);
    if (reading === undefined) throw new TypeError(`${joinNames(setting)} is not in the table`);
    return reading as SettingReading<V>;
  };
  const valuesOf = (group: SettingGroup): object =>
    mapValues(group, (node) => (isSetting(node) ? of(node).value : valuesOf(node)));
  return {
    table,
    values: mapValues(table, ({ settings }) => valuesOf(settings)) as TableValues<T>,
    problems: [...readings.values()].flatMap((reading) => reading.problems),
    warnings: [...readings].flatMap(([setting, reading]) => warningsOf(setting, reading)),
    of,
  };
}

function mapValues<V>(object: Readonly<Record<string, V>>, turn: (value: V) => unknown): object {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, turn(value)]));
}

function warningsOf(setting: Setting<unknown>, { given, value }: SettingReading<unknown>) {
  if (given === undefined || isDeepStrictEqual(value, setting.default)) return [];
  const { deprecated } = setting;
  if (deprecated === undefined) return [];
  return [`${showGiven(setting, given.name, given.text)} is deprecated: ${deprecated}`];
}
