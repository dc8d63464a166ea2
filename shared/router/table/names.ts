// Names of modules and classes as path parts (behaviour: names-in-paths). nodes.ts defines how clients can spell
// them.

const className = /^[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9_]+)?$/;

/** Kebab-case: a dash between lower and upper case, and before the last capital of a run of capitals; digits never
 * split. `BurstPolicy` is `burst-policy`, `HTTPProbe` is `http-probe`. */
export function toPathName(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
}

/** An extension begins at the first underscore of a class name: `Robots_txt` is `robots.txt`, `Default_txt` is
 * `index.txt`. Undefined for a name that cannot be a path part. */
export function toClassPathName(name: string): string | undefined {
  if (!className.test(name)) return undefined;
  const [, base = '', extension] = /^([^_]*)_?(.+)?$/.exec(name) ?? [];
  if (extension === undefined) return toPathName(name);
  return `${base === 'Default' ? 'index' : toPathName(base)}.${toPathName(extension)}`;
}

/** A class with such a name is not routed. */
export function isPrivateName(name: string): boolean {
  return name.startsWith('_') || name.endsWith('Controller');
}

/** A folder such as `[id]` matches any part of a path. */
export function isParameter(part: string): boolean {
  return part.startsWith('[');
}
