// Which name was meant where a given one means nothing: one that differs from it in a letter.

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
