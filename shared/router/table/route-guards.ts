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
  readonly guards: readonly Guard[];
  /** `public: true` on a method removes the authentication of the levels above it, but not of subclasses. */
  readonly isLifted: boolean;
}

/** Throws if a guard is invalid. */
export function findGuards({ controller, method, within, common }: Guarded): RouteGuards {
  const chain = chainOf(controller);
  const declaring = chain.findLastIndex((link) => Object.hasOwn(link, method));
  const nearest = declaring < 0 ? undefined : opOf(chain[declaring], method);
  const isPublic = nearest?.spec.public === true;
  const isDeclaredOpen = [...ofClass(controller), ...ofMethod(controller, method)].some(isOpen);
  const levels: readonly Level[] = [
    { guards: common, isLifted: isPublic || isDeclaredOpen },
    ...within.flatMap(chainOf).map((link) => ({ guards: ofClass(link), isLifted: isPublic })),
    ...chain.map((link, at) => ({ guards: ofClass(link), isLifted: isPublic && at <= declaring })),
    ...chain.map((link, at) => ({
      guards: ofMethod(link, method),
      isLifted: isPublic && at < declaring,
    })),
  ];
  const guards = levels.flatMap((level) =>
    level.guards.filter((guard) => !isOpen(guard) && !(level.isLifted && authenticates(guard))),
  );
  return {
    guards: [...new Set(guards)],
    isForgotten: !isPublic && !isDeclaredOpen && !guards.some(authenticates),
  };
}

export function authenticates(guard: Guard): boolean {
  return guard.authenticates;
}

export function toGuards(guard: unknown): readonly Guard[] {
  if (areGuards(guard)) return [guard ?? []].flat();
  throw new TypeError('a guard is not made by bearer(), basic() or the like');
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

function ofClass(link: object): readonly Guard[] {
  return toGuards(Object.hasOwn(link, 'guard') ? Reflect.get(link, 'guard') : undefined);
}

/** A declaration replaces that of a base class, but not its guard. */
function ofMethod(link: object, method: string): readonly Guard[] {
  return toGuards(opOf(link, method)?.spec.guard);
}

function opOf(link: object | undefined, method: string): Op | undefined {
  if (link === undefined || !Object.hasOwn(link, method)) return undefined;
  const declared: unknown = Reflect.get(link, method);
  return isOp(declared) ? declared : undefined;
}
