// Names on a controller that are nearly those that mean something: a misspelt verb would be a method that nobody
// reaches, a misspelt static a guard that nobody asks (behaviour: misspelt-names).

const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'ANY'];
const statics = ['private', 'guard', 'cors', 'xml'];
/** Said of a method, not of a class. */
const ofMethods: Readonly<Record<string, string>> = { public: 'guard = open()' };

/** The verb that a method was to be named after: `get` and `GTE` are no handlers. Other names, such as those of
 * helpers, have small letters after the first, or more than one word. */
export function meantVerb(name: string): string | undefined {
  const head = name.split('_', 1)[0] ?? '';
  if (verbs.includes(head) || head.length < 3) return undefined;
  const upper = head.toUpperCase();
  if (name === head.toLowerCase() && verbs.includes(upper)) return upper;
  return head === upper ? verbs.find((verb) => isNear(head, verb)) : undefined;
}

/** What a static was to be: `guards`, `privat`, `publik`. */
export function meantStatic(name: string): string | undefined {
  if (statics.includes(name) || name.length < 4) return undefined;
  const meant = nearestName(name, [...statics, ...Object.keys(ofMethods)]);
  return meant === undefined ? undefined : (ofMethods[meant] ?? meant);
}

/** The name that was meant, which may be the same; undefined where none is near. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  return known.find((name) => name.length > 3 && isNear(given, name));
}

/** Whether one letter is missing, too many or another one, or two neighbours have changed places. */
function isNear(given: string, meant: string): boolean {
  if (Math.abs(given.length - meant.length) > 1) return false;
  let same = 0;
  while (same < given.length && given[same] === meant[same]) same += 1;
  const [a, b] = [given.slice(same), meant.slice(same)];
  return (
    a.slice(1) === b.slice(1) ||
    a.slice(1) === b ||
    a === b.slice(1) ||
    (a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2))
  );
}
