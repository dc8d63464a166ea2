// Finds names in the environment that were probably meant as settings but are none. Everything that
// other programs put there is left alone.
import { findNearest } from './nearest-name.ts';
import { isServiceLink } from './parse-settings.ts';
import type { Environment } from './setting.ts';

/** Belongs to others, however close it comes: the OpenTelemetry exporter and npm. */
const foreign = /^(OTEL_|npm_)/i;

/** Shorter names (HOST, PORT) are too close to everything. */
const shortestNear = 8;

/** Longer ones are nobody's typing mistake. */
const longestName = 100;

/**
 * One sentence for each name in the environment that is not in `known` and either begins with one
 * of `prefixes` or is nearly a known name. In the order of the environment. `usual` has names that
 * others are known to set, and what they mean.
 */
export function warnUnknownNames(
  environment: Environment,
  known: ReadonlySet<string>,
  prefixes: readonly string[],
  usual: Readonly<Record<string, string>> = {},
): string[] {
  return Object.entries(environment).flatMap(([name, text]) => {
    if (text === undefined || known.has(name) || name.length > longestName) return [];
    if (foreign.test(name) || isServiceLink(name, text)) return [];
    const isOurs = prefixes.some((prefix) => name.startsWith(prefix));
    const nearest = findNearest(name, known, (candidate) => {
      if (isOurs) return Math.floor(candidate.length / 4);
      return candidate.length < shortestNear ? -1 : Math.min(3, Math.floor(candidate.length / 6));
    });
    const meant = usual[name] ?? nearest ?? findOnlyCompletion(name, known);
    if (meant !== undefined) {
      return [`${name} is not a setting and is ignored: did you mean ${meant}?`];
    }
    return isOurs ? [`${name} is not a setting and is ignored; --help lists all settings`] : [];
  });
}

/** The one known name that goes on where `name`, several words long, ends. */
function findOnlyCompletion(name: string, known: ReadonlySet<string>): string | undefined {
  if (!/^[A-Z]+_[A-Z]+_/.test(name)) return undefined;
  const completions = [...known].filter((candidate) => candidate.startsWith(`${name}_`));
  return completions.length === 1 ? completions[0] : undefined;
}
