// Settings as command-line flags, which override the environment. table.ts has the settings.
import type { Command } from 'commander';
import {
  type Environment,
  type Setting,
  type SettingsTable,
  toRows,
} from '../../../shared/settings/setting.ts';

const isFlag = (name: string): boolean => name.startsWith('--');
const isVariable = (name: string): boolean => !isFlag(name);

/** Adds an option for each setting that has a flag, under the table's headings. */
export function addFlags(command: Command, table: SettingsTable): void {
  for (const { title, setting } of toRows(table)) {
    const flag = setting.names.find(isFlag);
    if (flag === undefined) continue;
    const value = setting.kind === 'bool' ? '[true|false]' : '<value>';
    const option = command.createOption(`${flag} ${value}`, describe(setting));
    command.addOption(option.helpGroup(`${title}:`));
  }
}

/** A paragraph of the help about settings without a flag, which other users could read in the list of processes. */
export function describeVariables(table: SettingsTable): string {
  const rows = toRows(table).filter(({ setting }) => setting.names.every(isVariable));
  const lines = rows.map(({ setting }) => `  ${setting.names[0]}\n      ${setting.doc}\n`);
  return `Set by environment variables only:\n${lines.join('')}`;
}

function describe(setting: Setting<unknown>): string {
  const fallback = setting.defaultText ?? setting.format(setting.default);
  const variables = setting.names.filter(isVariable);
  const facts = [...variables, ...(fallback === '' ? [] : [`default: ${fallback}`])];
  const words = setting.kind === 'choice' ? `: ${setting.accepts}` : '';
  return `${setting.doc}${words} (${facts.join('; ')})`;
}

/** The environment, overridden by the command line. `options` is what commander has parsed. */
export function overlayFlags(
  table: SettingsTable,
  environment: Environment,
  options: Readonly<Record<string, unknown>>,
): Environment {
  const overlaid: Record<string, string | undefined> = { ...environment };
  for (const { setting } of toRows(table)) {
    const flag = setting.names.find(isFlag);
    const given = flag === undefined ? undefined : options[toOptionKey(flag)];
    if (flag === undefined || given === undefined) continue;
    for (const name of setting.names) overlaid[name] = undefined;
    overlaid[flag] = String(given);
  }
  return overlaid;
}

/** The name that commander gives an option's property. */
function toOptionKey(flag: string): string {
  return flag.slice(2).replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase());
}
