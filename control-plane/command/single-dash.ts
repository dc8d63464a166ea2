// Flags that the reference's check command takes with one dash or two, in the form that commander
// takes (reference-behaviour 10.2).

const names = new Set(['config_dir', 'merge_domain_configs']);
const switches = new Set(['merge_domain_configs']);

/** `-config_dir x` and `-config_dir=x` get their second dash; a switch loses `=true`, and with
 * `=false` it is left out. What follows `--` stays as it is. */
export function rewriteSingleDash(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  return args.flatMap((arg, index) => {
    const [, name = '', value] = /^--?([a-z_]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (!names.has(name) || (end !== -1 && index > end)) return [arg];
    if (value === undefined) return [`--${name}`];
    if (!switches.has(name)) return [`--${name}=${value}`];
    if (value === 'false') return [];
    // Any other value is refused by the parser, which names it.
    return value === 'true' ? [`--${name}`] : [`--${name}=${value}`];
  });
}
