// The settings in force, for the debug port: values with their origin, without secrets.
import type { TableReading } from '../../shared/settings/parse-settings.ts';
import { type SettingsTable, toRows } from '../../shared/settings/setting.ts';
import { maskSecret } from '../../shared/settings/shown-value.ts';

export interface DumpRow {
  /** The heading under which the setting is documented. */
  readonly section: string;
  /** The preferred name. */
  readonly name: string;
  /** The value in force, secrets masked; '' when it is unset. */
  readonly value: string;
  /** `default`, or the name by which the value was set. */
  readonly from: string;
}

/**
 * One row per setting in the order of the table. `values` has the values in force by the keys of the table; other keys
 * are ignored.
 */
export function toDump<T extends SettingsTable>(
  table: T,
  reading: TableReading<T>,
  values: object,
): DumpRow[] {
  return toRows(table).map(({ title, path, setting }) => ({
    section: title,
    name: setting.names[0],
    value: maskSecret(setting, setting.format(valueAt(values, path))),
    from: reading.of(setting).given?.name ?? 'default',
  }));
}

function valueAt(values: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], values);
}
