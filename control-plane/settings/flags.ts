// Settings as command-line flags: which flags there are, and a command line laid over the environment.
// What the settings are is left to table.ts.
import type { Command } from 'commander';
import { type Environment, type SettingsTable, toRows } from '../../shared/settings/setting.ts';

const isFlag = (name: string): boolean => name.startsWith('--');

/** Adds an option for each setting that has a flag. They are described by `toHelp`, which shows the
 * variables as well, so commander leaves them out of its own help. */
export function addFlags(command: Command, table: SettingsTable): void {
  for (const { setting } of toRows(table)) {
    for (const name of setting.names.filter(isFlag)) {
      const value = setting.kind === 'bool' ? '[true|false]' : '<value>';
      command.addOption(command.createOption(`${name} ${value}`).hideHelp());
    }
  }
}

/** The environment with what the command line says in place of what the variables say. `options` is
 * what commander has read. */
export function overlayFlags(
  table: SettingsTable,
  environment: Environment,
  options: Readonly<Record<string, unknown>>,
): Environment {
  const overlaid: Record<string, string | undefined> = { ...environment };
  for (const { setting } of toRows(table)) {
    for (const name of setting.names.filter(isFlag)) {
      const given = options[toOptionKey(name)];
      if (given === undefined) continue;
      for (const other of setting.names) overlaid[other] = undefined;
      overlaid[name] = String(given);
    }
  }
  return overlaid;
}

/** As commander names the property of an option. */
function toOptionKey(flag: string): string {
  return flag.slice(2).replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase());
}
