// Regular expressions of settings and mapping files, which are written for RE2.

export type CompiledPattern =
  | { readonly ok: true; readonly pattern: RegExp }
  | { readonly ok: false; readonly reason: string };

/** Takes the two common forms that only RE2 has: named groups with a P and flags at the start. */
export function compilePattern(source: string): CompiledPattern {
  const [, flags = '', rest = source] = /^\(\?([ims]+)\)(.*)$/s.exec(source) ?? [];
  try {
    return { ok: true, pattern: new RegExp(rest.replaceAll('(?P<', '(?<'), flags) };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
