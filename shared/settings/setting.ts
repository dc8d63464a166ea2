// Defines a setting, and a table of settings: one row per setting, in named sections. The type of the parsed settings
// follows from the table. parse-settings.ts reads the environment; kind.ts has the kinds of values.

/** Alternative names of one setting; documents and messages prefer the first. */
export type SettingNames = readonly [string, ...string[]];

/** The environment, or a replacement for it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** `reason` states what is wrong with the text, repeating no more of it than needed. */
export type ValueResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/** One row of a table. `T` is the type of the value that the program sees. */
export interface Setting<T> {
  readonly names: SettingNames;
  /** Further names that are read, but not documented. */
  readonly otherNames: readonly string[];
  readonly kind: 'text' | 'bool' | 'int' | 'float' | 'duration' | 'list' | 'map' | 'choice';
  /** The value of a setting that is not given; durations are in milliseconds. */
  readonly default: T;
  /** The default as documents show it, where the value is not enough. */
  readonly defaultText: string | undefined;
  /** One sentence without a final full stop. */
  readonly doc: string;
  /** Completes a sentence that begins with "write": the valid values, with an example. */
  readonly accepts: string;
  /** The words of a choice, as documents show them. */
  readonly words: readonly string[] | undefined;
  /**
   * `whole`: the value is never shown. `url`: only its credentials are hidden. `file`: the path of a file with a
   * secret, hidden where the text may be the secret itself.
   */
  readonly secret: 'no' | 'url' | 'file' | 'whole';
  /** The reason not to use it any longer. */
  readonly deprecated: string | undefined;
  parse(text: string): ValueResult<T>;
  /** The text of a value; '' for an unset one. */
  format(value: T): string;
}

/** Rows and groups of rows by the name under which the program sees them. */
export interface SettingGroup {
  readonly [key: string]: Setting<unknown> | SettingGroup;
}

/** A group with a heading in the documents. */
export interface SettingSection<G extends SettingGroup = SettingGroup> {
  readonly title: string;
  readonly settings: G;
}

export type SettingsTable = Readonly<Record<string, SettingSection>>;

/** The parsed settings of a group: the same keys with values in place of rows. */
export type GroupValues<G> = {
  readonly [K in keyof G]: G[K] extends Setting<infer T> ? T : GroupValues<G[K]>;
};

/** The parsed settings of a table. */
export type TableValues<T extends SettingsTable> = {
  readonly [K in keyof T]: GroupValues<T[K]['settings']>;
};

export function section<G extends SettingGroup>(title: string, settings: G): SettingSection<G> {
  return { title, settings };
}

/** One row, with its heading and the keys that lead to its value. */
export interface SettingRow {
  readonly title: string;
  readonly path: readonly string[];
  readonly setting: Setting<unknown>;
}

/** All rows in the order of the table. */
export function toRows(table: SettingsTable): SettingRow[] {
  return Object.entries(table).flatMap(([key, { title, settings }]) =>
    rowsOfGroup(title, [key], settings),
  );
}

function rowsOfGroup(title: string, path: readonly string[], group: SettingGroup): SettingRow[] {
  return Object.entries(group).flatMap(([key, node]) =>
    isSetting(node)
      ? [{ title, path: [...path, key], setting: node }]
      : rowsOfGroup(title, [...path, key], node),
  );
}

export function isSetting(node: Setting<unknown> | SettingGroup): node is Setting<unknown> {
  return typeof node['parse'] === 'function';
}
