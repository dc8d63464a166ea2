// Regular expressions of settings and mapping files: in RE2's syntax, as their authors use it, and matched in linear
// time, since the texts come from requests.
import type { RE2JS } from 're2js';
import { loadLibrary } from '../../shared/library.ts';

/** A match as a RegExp returns it. */
export interface Found extends ArrayLike<string | undefined> {
  readonly groups?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Matches anywhere in the text; a RegExp of our own can be used as well. */
export interface Pattern {
  exec(text: string): Found | null;
}

export type CompiledPattern =
  | { readonly ok: true; readonly pattern: Pattern }
  | { readonly ok: false; readonly reason: string };

/** The pattern, or the reason why it is invalid, in RE2's terms. */
export function compilePattern(source: string): CompiledPattern {
  // Loaded only where a pattern is configured.
  const { RE2JS: re2 } = loadLibrary('re2js') as typeof import('re2js');
  try {
    return { ok: true, pattern: new LinearPattern(source, re2.compile(source)) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { ok: false, reason: text.replace(/^error parsing regexp: /, '') };
  }
}

class LinearPattern implements Pattern {
  /** The pattern's text. */
  readonly source: string;
  readonly #compiled: RE2JS;
  readonly #names: readonly (readonly [name: string, group: number])[];

  constructor(source: string, compiled: RE2JS) {
    this.source = source;
    this.#compiled = compiled;
    this.#names = Object.entries(compiled.namedGroups());
  }

  exec(text: string): Found | null {
    const matcher = this.#compiled.matcher(text);
    if (!matcher.find()) return null;
    const found = Array.from(
      { length: matcher.groupCount() + 1 },
      (_, number) => matcher.group(number) ?? undefined,
    );
    const groups = Object.fromEntries(this.#names.map(([name, number]) => [name, found[number]]));
    return Object.assign(found, { groups });
  }
}
