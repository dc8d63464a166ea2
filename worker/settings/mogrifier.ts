// Reads the rewriting rules of tagged statistics, whose setting names contain the names of the rules
// (behaviour: tagged-lines). tagged-format.ts applies them.
import { map, text } from '../../shared/settings/kind.ts';
import { readSetting } from '../../shared/settings/parse-settings.ts';
import type { Environment, SettingNames } from '../../shared/settings/setting.ts';
import { showGiven } from '../../shared/settings/shown-value.ts';
import { compilePattern, type Pattern } from '../metrics/regular-expression.ts';

export interface Mogrifier {
  readonly name: string;
  /** Matches anywhere in a metric's name. */
  readonly pattern: Pattern;
  /** The new name; `$1` is replaced by the first group, `$0` by the whole match. */
  readonly metricName: string;
  /** Values may contain `$1` as in `metricName`. */
  readonly tags: Readonly<Record<string, string>>;
}

export interface MogrifierReading {
  readonly mogrifiers: readonly Mogrifier[];
  readonly problems: readonly string[];
  /** Every setting name that belongs to one of the rules. */
  readonly names: readonly string[];
}

/** `names` as listed; `listSetting` is how the list was given, for messages. */
export function readMogrifiers(
  names: readonly string[],
  listSetting: string,
  environment: Environment,
): MogrifierReading {
  const readings = [...new Set(names)].map((name) => readMogrifier(name, listSetting, environment));
  return {
    mogrifiers: readings.flatMap((reading) => reading.mogrifiers),
    problems: readings.flatMap((reading) => reading.problems),
    names: readings.flatMap((reading) => reading.names),
  };
}

function readMogrifier(
  name: string,
  listSetting: string,
  environment: Environment,
): MogrifierReading {
  if (name === '') {
    return { mogrifiers: [], problems: [`${listSetting}: a name in the list is empty`], names: [] };
  }
  if (!/^[\w.-]+$/.test(name)) {
    const problem = `${listSetting}: a name in the list has a character that a variable's name cannot have`;
    return { mogrifiers: [], problems: [problem], names: [] };
  }
  const rows = {
    pattern: text({ names: namesOf(name, 'PATTERN'), default: '', doc: '' }),
    metricName: text({ names: namesOf(name, 'NAME'), default: '', doc: '' }),
    tags: map({ names: namesOf(name, 'TAGS'), example: 'domain:$1,key:$2', doc: '' }),
  };
  const pattern = readSetting(rows.pattern, environment);
  const metricName = readSetting(rows.metricName, environment);
  const tags = readSetting(rows.tags, environment);

  const problems = [...pattern.problems, ...metricName.problems, ...tags.problems];
  for (const [row, { value, problems: own }] of [
    [rows.pattern, pattern],
    [rows.metricName, metricName],
  ] as const) {
    if (value === '' && own.length === 0) {
      const [neutral, , established] = row.names;
      problems.push(
        `${neutral}/${established} is not set: ${listSetting} lists ${JSON.stringify(name)}`,
      );
    }
  }
  const compiled = compilePattern(pattern.value);
  if (!compiled.ok && pattern.given !== undefined) {
    const shown = showGiven(rows.pattern, pattern.given.name, pattern.given.text);
    problems.push(`${shown}: not a regular expression (${compiled.reason})`);
  }
  const emptyTag = Object.entries(tags.value).find(([key, value]) => key === '' || value === '');
  if (emptyTag !== undefined && tags.given !== undefined) {
    const shown = showGiven(rows.tags, tags.given.name, tags.given.text);
    problems.push(`${shown}: a key or a value is empty; write ${rows.tags.accepts}`);
  }
  return {
    mogrifiers:
      compiled.ok && problems.length === 0
        ? [{ name, pattern: compiled.pattern, metricName: metricName.value, tags: tags.value }]
        : [],
    problems,
    names: [rows.pattern, rows.metricName, rows.tags].flatMap((row) => row.names),
  };
}

/** Singular and plural are both in use; both are read in both families. */
function namesOf(name: string, what: 'PATTERN' | 'NAME' | 'TAGS'): SettingNames {
  const rest = `${name.toUpperCase()}_${what}`;
  return [
    `TAGGED_MOGRIFIER_${rest}`,
    `TAGGED_MOGRIFIERS_${rest}`,
    `DOG_STATSD_MOGRIFIER_${rest}`,
    `DOG_STATSD_MOGRIFIERS_${rest}`,
  ];
}
