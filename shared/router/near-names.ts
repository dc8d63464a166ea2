// Which name was meant where a given one means nothing: one that differs from it in a letter.
import { editDistance } from '../nearest-word.ts';

/** Throws a TypeError for a member that means nothing: it would be lost without a word. */
export function refuseUnknownNames(what: string, given: object, known: object): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    const meant = nearestName(name, Object.keys(known));
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    throw new TypeError(`${what}: ${name} means nothing${hint}`);
  }
}

/** The name that was meant, which may be the same; undefined where none is near. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  return known.find((name) => name.length > 3 && isNear(given, name));
}

/** Whether one letter is missing, too many or another one, or two neighbours have changed places. */
export function isNear(given: string, meant: string): boolean {
  return editDistance(given, meant, 1) <= 1;
}
