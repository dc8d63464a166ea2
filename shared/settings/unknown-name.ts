// Finds names in the environment that were probably intended as settings but are none. Names of other programs are
// ignored.
import { editDistance } from '../nearest-word.ts';
import { isServiceLink } from './parse-settings.ts';
import type { Environment } from './setting.ts';

/** Names of other programs, however similar: the OpenTelemetry exporter and npm. */
const foreign = /^(OTEL_|npm_)/i;

/** Shorter names (HOST, PORT) are too close to everything. */
const shortestNear = 8;

/** Longer ones are hardly misspelled. */
const longestName = 100;

/**
 * One sentence for each name in the environment that is not in `known`, and either begins with one of `prefixes` or is
 * close to a known name, in the order of the environment. `usual` has names that other programs set, and their meaning.
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
    const hasOwnPrefix = prefixes.some((prefix) => name.startsWith(prefix));
    const nearest = findNearest(name, known, hasOwnPrefix);
    const meaning = Object.hasOwn(usual, name) ? usual[name] : undefined;
    const meant = meaning ?? nearest ?? findOnlyCompletion(name, known);
    if (meant !== undefined) {
      return [`${name} is not a setting and is ignored: did you mean ${meant}?`];
    }
    return hasOwnPrefix
      ? [`${name} is not a setting and is ignored; --help lists all settings`]
      : [];
  });
}

/**
 * The nearest known name, within a stricter distance than for words, since names of other programs are no mistakes. The
 * first among equally near ones.
 */
function findNearest(
  name: string,
  known: ReadonlySet<string>,
  hasOwnPrefix: boolean,
): string | undefined {
  const upper = name.toUpperCase();
  let nearest: string | undefined;
  let smallest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    if (!hasOwnPrefix && candidate.length < shortestNear) continue;
    const most = hasOwnPrefix ? candidate.length / 4 : Math.min(3, candidate.length / 6);
    const bound = Math.min(Math.floor(most), smallest - 1);
    if (Math.abs(candidate.length - name.length) > bound) continue;
    const distance = editDistance(upper, candidate.toUpperCase(), bound);
    if (distance > bound) continue;
    nearest = candidate;
    smallest = distance;
  }
  return nearest;
}

/** The only known name that begins with `name`, if that consists of several words. */
function findOnlyCompletion(name: string, known: ReadonlySet<string>): string | undefined {
  if (!/^[A-Z]+_[A-Z]+_/.test(name)) return undefined;
  const completions = [...known].filter((candidate) => candidate.startsWith(`${name}_`));
  return completions.length === 1 ? completions[0] : undefined;
}
