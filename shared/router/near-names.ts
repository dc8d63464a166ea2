// Suggests the intended name for an unknown one: a name that differs from it in one letter.
import { editDistance } from '../nearest-word.ts';

/** Throws a TypeError for an unknown member: it would be silently ignored. */
export function refuseUnknownNames(what: string, given: object, known: readonly string[]): void {
  const name = Object.keys(given).find((one) => !known.includes(one));
  if (name === undefined) return;
  const meant = nearestName(name, known);
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  throw new TypeError(`${what}: ${name} is unknown${hint}`);
}

/** Never includes a text or an object of the application, which may contain a secret. */
export function kindOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The intended name, which can be the given one; undefined if no name is near. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  return known.find((name) => name.length > 3 && isNear(given, name));
}

/** Whether one letter is missing, extra or different, or two adjacent letters are swapped. */
export function isNear(given: string, meant: string): boolean {
  return editDistance(given, meant, 1) <= 1;
}
