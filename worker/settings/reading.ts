// The settings as they were read, and their names in texts. The checks are in files beside this.
import { joinNames, type TableReading } from '../../shared/settings/parse-settings.ts';
import type { Setting } from '../../shared/settings/setting.ts';
import { showGiven } from '../../shared/settings/shown-value.ts';
import type { workerTable } from './table.ts';

export type WorkerReading = TableReading<typeof workerTable>;

/** The name by which a setting was given, or all its names. */
export function nameOf(reading: WorkerReading, setting: Setting<unknown>): string {
  return reading.of(setting).given?.name ?? joinNames(setting);
}

/** `NAME="text"` as given; only its names for a setting that is not given. */
export function showSetting(reading: WorkerReading, setting: Setting<unknown>): string {
  const { given } = reading.of(setting);
  return given === undefined ? joinNames(setting) : showGiven(setting, given.name, given.text);
}
