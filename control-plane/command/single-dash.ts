// Flags with one dash, as the reference takes them (behaviour: check-of-the-reference), in the form
// that commander takes: `-config_dir x` and `-config_dir=x` get their second dash.
import type { Command } from 'commander';
import { nearestWord } from '../../shared/nearest-word.ts';

/**
 * Also rewrites near misses of the flags of `program`'s commands, so that the parser suggests the right
 * one. A switch loses `=true`, and is removed with `=false`. Arguments after `--` are unchanged.
 */
export function rewriteSingleDash(args: readonly string[], program: Command): string[] {
  const options = program.commands.flatMap((command) => command.options);
  const names = ['help', ...new Set(options.map((option) => option.long?.slice(2) ?? ''))];
  const switches = new Set(options.filter((each) => each.isBoolean()).map((each) => each.long));
  const end = args.indexOf('--');
  return args.flatMap((arg, index) => {
    const [, dashes, name = '', value] = /^(--?)([a-z][a-z_-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const isFlag = dashes !== undefined && (end === -1 || index < end);
    if (!isFlag || nearestWord(name, names) === undefined) return [arg];
    const flag = `--${name}`;
    if (switches.has(flag) && value === 'false') return [];
    return [
      value === undefined || (switches.has(flag) && value === 'true') ? flag : `${flag}=${value}`,
    ];
  });
}
