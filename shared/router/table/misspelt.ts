// Names on a controller that nearly match a meaningful one: with a misspelt verb, no request would reach the method;
// with a misspelt static, a guard would never run (behaviour: misspelt-names).
import { isNear, nearestName } from '../near-names.ts';

const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'ANY'];
const meaning = ['private', 'guard', 'cors', 'xml', 'protocols'];
/** Members of `op()` and of `_folder`, which would have no effect on a class. */
const elsewhere: ReadonlySet<string> = new Set([
  ...['limits', 'etag', 'produces', 'returns', 'around', 'before', 'after', 'onError'],
]);

/** The problems of one module, human-readable: reported with their position. */
export interface Report {
  /** Keeps the application from starting. */
  mistake(text: string): void;
  warning(text: string): void;
}

type Statics = readonly (readonly [name: string, value: unknown])[];

/** By convention a method in lower case is not a handler, and it may be a helper, so it causes only a warning. */
export function reportMisspelt(
  owner: string,
  { methods, statics }: { readonly methods: Iterable<string>; readonly statics: Statics },
  report: Report,
): void {
  for (const name of methods) {
    const verb = meantVerb(name);
    if (verb === undefined) continue;
    const text = `${owner}.${name} is no handler; did you mean ${verb}?`;
    if (name === name.toLowerCase()) report.warning(text);
    else report.mistake(text);
  }
  for (const [name] of statics) {
    const meant = meantStatic(name);
    if (meant === undefined) continue;
    report.mistake(`${owner}: the static ${name} is unknown; did you mean ${meant}?`);
  }
}

/** The verb that a method was probably intended to be: `get` and `GTE` are not handlers. Other names, such as those of
 * helpers, have lower case letters after the first, or more than one word. */
function meantVerb(name: string): string | undefined {
  const head = name.split('_', 1)[0] ?? '';
  if (verbs.includes(head) || head.length < 3) return undefined;
  const upper = head.toUpperCase();
  if (name === head.toLowerCase() && verbs.includes(upper)) return upper;
  return head === upper ? verbs.find((verb) => isNear(head, verb)) : undefined;
}

/** The static that was probably intended: `guards`, `privat`, `publik`. */
function meantStatic(name: string): string | undefined {
  if (meaning.includes(name) || name.length < 4) return undefined;
  if (elsewhere.has(name)) return `${name} of op() or _folder`;
  const meant = nearestName(name, [...meaning, 'public']);
  return meant === 'public' ? 'guard = open()' : meant;
}

/** Statics of the wrong type: a text in place of a boolean would silently not make a class private, or not make it
 * accept XML. */
export function reportWrongStatics(owner: string, controller: object, report: Report): void {
  for (const name of ['private', 'xml']) {
    const value: unknown = Reflect.get(controller, name);
    if (value === undefined || typeof value === 'boolean') continue;
    report.mistake(`${owner}: the static ${name} is true or false`);
  }
}

/** A class or an object whose methods are named after verbs, but which no request reaches although the application
 * seems to serve it. */
export function reportNoController(owner: string, value: unknown, report: Report): void {
  const methods: unknown = typeof value === 'function' ? value.prototype : value;
  if (typeof methods !== 'object' || methods === null) return;
  const verb = Object.keys(Object.getOwnPropertyDescriptors(methods)).find((name) =>
    verbs.includes(name.split('_', 1)[0] ?? ''),
  );
  if (verb === undefined) return;
  report.warning(
    `${owner} has ${verb} and is not a controller, so that no path reaches it: it does not extend Controller of this package`,
  );
}

/** Whether a private module was probably intended to be `_folder`: its guard would be missing. */
export function isNearlyFolder(module: string): boolean {
  return module.startsWith('_') && isNear(module, '_folder');
}
