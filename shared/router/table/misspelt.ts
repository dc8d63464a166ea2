// Names on a controller that are nearly those that mean something: a misspelt verb would be a method that no request
// reaches, a misspelt static a guard that is never asked (behaviour: misspelt-names).
import { isNear, nearestName } from '../near-names.ts';
import { token } from '../request/media-type.ts';

const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'ANY'];
const meaning = ['private', 'guard', 'cors', 'xml', 'protocols'];
/** What has a meaning in another place. */
const elsewhere: Readonly<Record<string, string>> = {
  limits: 'op({ limits }) or in _folder',
  etag: 'op({ etag })',
  produces: 'op({ produces })',
  returns: 'op({ returns })',
  around: '_folder',
  before: '_folder',
  after: '_folder',
  onError: '_folder',
  unknownQuery: '_folder',
  requireGuards: 'createApp({ requireGuards })',
};
/** Of a method, not of a class. */
const ofMethods: Readonly<Record<string, string>> = { public: 'guard = open()' };

/** What is wrong in one module, human-readable: reported with its position. */
export interface Report {
  /** Keeps the application from starting. */
  mistake(text: string): void;
  warning(text: string): void;
}

type Statics = readonly (readonly [name: string, value: unknown])[];

/** A method in small letters is no handler by the convention, and may be a helper: it is only reported. */
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
    const place = elsewhere[name];
    const meant = place === undefined ? meantStatic(name) : undefined;
    const hint = place === undefined ? `did you mean ${meant}?` : `it stands in ${place}`;
    if (place === undefined && meant === undefined) continue;
    report.mistake(`${owner}: the static ${name} means nothing; ${hint}`);
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

/** A class that is not private, or takes no XML, because of a text. */
export function reportWrongStatics(owner: string, controller: object, report: Report): void {
  for (const name of ['private', 'xml']) {
    const value: unknown = Reflect.get(controller, name);
    if (value === undefined || typeof value === 'boolean') continue;
    report.mistake(`${owner}: the static ${name} is true or false`);
  }
  const protocols: unknown = Reflect.get(controller, 'protocols') ?? [];
  const areNames = Array.isArray(protocols) && protocols.every((one) => token.test(one));
  if (!areNames)
    report.mistake(`${owner}: the static protocols is a list of names of subprotocols`);
}

/** A class, or an object, with methods named after verbs that no request reaches: the application would seem to have them. */
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

/** Whether a private module was to be `_folder`: its guard would be missing. */
export function isNearlyFolder(module: string): boolean {
  return module.startsWith('_') && isNear(module, '_folder');
}
