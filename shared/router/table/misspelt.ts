// Names on a controller that are nearly those that mean something: a misspelt verb would be a method that no request
// reaches, a misspelt static a guard that is never asked (behaviour: misspelt-names).
import { isNear, nearestName } from '../near-names.ts';

const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'ANY'];
const meaning = ['private', 'guard', 'cors', 'xml'];
/** Of a method, not of a class. */
const ofMethods: Readonly<Record<string, string>> = { public: 'guard = open()' };

/** What is wrong in one module, human-readable: reported with its position. */
export interface Report {
  /** Keeps the application from starting. */
  mistake(text: string): void;
  warning(text: string): void;
}

/** A method in small letters is no handler by the convention, and may be a helper: it is only reported. */
export function reportMisspelt(
  owner: string,
  { methods, statics }: { readonly methods: Iterable<string>; readonly statics: readonly string[] },
  report: Report,
): void {
  for (const name of methods) {
    const verb = meantVerb(name);
    if (verb === undefined) continue;
    const text = `${owner}.${name} is no handler; did you mean ${verb}?`;
    if (name === name.toLowerCase()) report.warning(text);
    else report.mistake(text);
  }
  for (const name of statics) {
    if (name === 'limits') {
      const text = 'the static limits means nothing; they stand in op({ limits }) or in _folder';
      report.mistake(`${owner}: ${text}`);
    }
    const meant = meantStatic(name);
    if (meant === undefined) continue;
    report.mistake(`${owner}: the static ${name} means nothing; did you mean ${meant}?`);
  }
}

/** The verb that a method was to be named after: `get` and `GTE` are no handlers. Other names, such as those of
 * helpers, have small letters after the first, or more than one word. */
function meantVerb(name: string): string | undefined {
  const head = name.split('_', 1)[0] ?? '';
  if (verbs.includes(head) || head.length < 3) return undefined;
  const upper = head.toUpperCase();
  if (name === head.toLowerCase() && verbs.includes(upper)) return upper;
  return head === upper ? verbs.find((verb) => isNear(head, verb)) : undefined;
}

/** What a static was to be: `guards`, `privat`, `publik`. */
function meantStatic(name: string): string | undefined {
  if (meaning.includes(name) || name.length < 4) return undefined;
  const meant = nearestName(name, [...meaning, ...Object.keys(ofMethods)]);
  return meant === undefined ? undefined : (ofMethods[meant] ?? meant);
}

/** Whether a private module was to be `_folder`: its guard would be missing. */
export function isNearlyFolder(module: string): boolean {
  return module.startsWith('_') && isNear(module, '_folder');
}
