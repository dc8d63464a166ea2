// Adds settings to the Helm chart's schema: the values of each choice, boolean or duration, from the tables of
// settings.
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { type Setting, type SettingsTable, toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';

/** A number needs its unit; otherwise a pod would report only at its start that it is missing. */
const duration = '([0-9.]+(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+';

/** In addition to those of YAML. */
const booleans = ['true', 'false', 'True', 'False', 'TRUE', 'FALSE', 't', 'f', 'T', 'F', '1', '0'];

/** The schema of the chart's values with the settings of the tables in it; Biome formats it afterwards. */
export function withSettings(schema: string): string {
  const read = JSON.parse(schema);
  read.definitions = {
    boolean: { enum: [true, false, 1, 0, ...booleans] },
    duration: { type: 'string', pattern: `^${duration}$` },
    durationOrZero: { anyOf: [{ const: 0 }, { type: 'string', pattern: `^(0|${duration})$` }] },
  };
  for (const [program, table] of [
    ['worker', workerTable],
    ['controlPlane', controlPlaneTable],
  ] as const) {
    read.properties[program].properties.settings.properties = toProperties(table);
  }
  return `${JSON.stringify(read, undefined, 2)}\n`;
}

function toProperties(table: SettingsTable): Record<string, object> {
  const entries = toRows(table).flatMap(({ setting }) => {
    const values = toValues(setting);
    const variables = setting.names.filter((name) => /^[A-Z]/.test(name));
    return values === undefined ? [] : variables.map((name) => [name, values] as const);
  });
  return Object.fromEntries(entries);
}

/** Includes the usual spellings of a word, if the setting accepts them. */
function toValues({ kind, words = [], parse }: Setting<unknown>): object | undefined {
  const accepts = (text: string) => parse(text).ok;
  if (kind === 'bool') return { $ref: '#/definitions/boolean' };
  // A setting that is a duration or a number of seconds accepts anything.
  if (kind === 'duration' && !accepts('5')) {
    return { $ref: `#/definitions/${accepts('0') ? 'durationOrZero' : 'duration'}` };
  }
  if (kind !== 'choice') return undefined;
  const written = words.flatMap((word) => [
    word,
    word.toLowerCase(),
    word.toUpperCase(),
    word.charAt(0).toUpperCase() + word.slice(1).toLowerCase(),
  ]);
  const empty = accepts('') ? [''] : [];
  return { enum: [...new Set([...written.filter(accepts), ...empty])] };
}
