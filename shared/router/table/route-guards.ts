// Determines at start who can call a method: the guards of the application, of the enclosing classes, of the base
// classes and of the method must all admit the request (behaviour: guards-add-up).
import { Controller } from '../controller.ts';
import { areGuards, type Guard, isOpen } from '../guard.ts';
import { isOp, type Op } from '../op.ts';
import type { ControllerClass } from './controller-class.ts';

export interface RouteGuards {
  /** In the order in which they run, each once. */
  readonly guards: readonly Guard[];
  /** No declaration defines who can call the method: it has no authenticating guard, and is not declared open. */
  readonly isForgotten: boolean;
}

export interface Guarded {
  readonly controller: ControllerClass;
  readonly method: string;
  /** The enclosing classes, outermost first. */
  readonly within: readonly object[];
  /** The guards of the application. */
  readonly common: readonly Guard[];
}

interface Level {
  /** The class or the method that declares the guards. */
  readonly owner: string;
  readonly guards: readonly Guard[];
  /** `public: true` on a method removes the authentication of the levels above it, but not of subclasses. */
  readonly isLifted: boolean;
}

/** Throws if a guard is invalid, and if `open()` contradicts the guard of a class. */
export function findGuards({ controller, method, within, common }: Guarded): RouteGuards {
  const chain = chainOf(controller);
  const declaring = chain.findLastIndex((link) => Object.hasOwn(link, method));
  const nearest = declaring < 0 ? undefined : opOf(chain[declaring], method);
  const isPublic = nearest?.spec.public === true;
  const levels = [
    ...within.flatMap(chainOf).map((link) => toLevel(link, isPublic)),
    ...chain.map((link, at) => toLevel(link, isPublic && at <= declaring)),
    ...chain.map((link, at) => toMethodLevel(link, method, isPublic && at < declaring)),
  ];
  const ownGuards = [
    ...toLevel(controller, false).guards,
    ...toMethodLevel(controller, method, false).guards,
  ];
  const saysOpen = ownGuards.some(isOpen);
  const asking = levels.find(({ guards, isLifted }) => !isLifted && guards.some(authenticates));
  if (saysOpen && asking !== undefined) {
    throw new TypeError(
      `open() contradicts the guard of ${asking.owner}, which it does not remove`,
    );
  }
  const all = [
    { owner: 'the application', guards: common, isLifted: isPublic || saysOpen },
    ...levels,
  ];
  const guards = all.flatMap((level) =>
    level.guards.filter((guard) => !isOpen(guard) && !(level.isLifted && authenticates(guard))),
  );
  return {
    guards: [...new Set(guards)],
    isForgotten: !isPublic && !saysOpen && !guards.some(authenticates),
  };
}

export function authenticates(guard: Guard): boolean {
  return guard.authenticates;
}

export function toGuards(guard: unknown, owner: string): readonly Guard[] {
  if (areGuards(guard)) return [guard ?? []].flat();
  throw new TypeError(`the guard of ${owner} is not made by bearer(), basic() or the like`);
}

/** The class chain from the base to the class itself, without Controller. */
function chainOf(value: object): readonly object[] {
  const chain: object[] = [];
  let link: object | null = value;
  while (link !== null && link !== Controller && link !== Function.prototype) {
    chain.unshift(link);
    link = Object.getPrototypeOf(link) as object | null;
  }
  return chain;
}

function toLevel(link: object, isLifted: boolean): Level {
  const owner = nameOf(link);
  const guard: unknown = Object.hasOwn(link, 'guard') ? Reflect.get(link, 'guard') : undefined;
  return { owner, guards: toGuards(guard, owner), isLifted };
}

/** A declaration replaces that of a base class, but not its guard. */
function toMethodLevel(link: object, method: string, isLifted: boolean): Level {
  const owner = `${nameOf(link)}.${method}`;
  return { owner, guards: toGuards(opOf(link, method)?.spec.guard, owner), isLifted };
}

function opOf(link: object | undefined, method: string): Op | undefined {
  if (link === undefined || !Object.hasOwn(link, method)) return undefined;
  const declared: unknown = Reflect.get(link, method);
  return isOp(declared) ? declared : undefined;
}

function nameOf(link: object): string {
  return 'name' in link && typeof link.name === 'string' ? link.name : 'a class';
}
