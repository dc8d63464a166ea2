// Which name was meant where a given one means nothing: one that differs from it in a letter.
import { editDistance } from '../nearest-word.ts';

/** Throws a TypeError for a member that means nothing, or is of another kind than in `known`, where that is not undefined: it
 * would be lost without a word, or fail at a request. */
export function refuseUnknownNames(what: string, given: unknown, known: object): void {
  if (kindOf(given) !== 'an object') {
    throw new TypeError(`${what} takes an object, not ${kindOf(given)}`);
  }
  for (const [name, value] of Object.entries(given as object)) {
    const usual: unknown = Reflect.get(known, name);
    const [wanted, kind] = [usual, value].map((one) =>
      typeof one === 'boolean' ? 'true or false' : kindOf(one),
    );
    const isOfKind = usual === undefined || value === undefined || kind === wanted;
    if (Object.hasOwn(known, name) && isOfKind) continue;
    if (!isOfKind) throw new TypeError(`${what}: ${name} is ${wanted}, not ${kind}`);
    const meant = nearestName(name, Object.keys(known));
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    throw new TypeError(`${what}: ${name} means nothing${hint}`);
  }
}

/** Never a text or an object of the application, which may hold a secret. */
export function kindOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The name that was meant, which may be the same; undefined where none is near. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  return known.find((name) => name.length > 3 && isNear(given, name));
}

/** Whether one letter is missing, too many or another one, or two neighbours have changed places. */
export function isNear(given: string, meant: string): boolean {
  return editDistance(given, meant, 1) <= 1;
}
