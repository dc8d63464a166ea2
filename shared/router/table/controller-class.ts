// Determines which values of a module are controllers, and which members such a class has (behaviour: private-parts).
// Uses property descriptors, so that no getter runs.
import { Controller, type Handler } from '../controller.ts';
import { isOp } from '../op.ts';
import { isPrivateName } from './names.ts';

export type ControllerClass = typeof Controller;

/** A default export is named after its class. */
export function classNameOf(exported: string, value: unknown): string {
  if (exported !== 'default' || typeof value !== 'function') return exported;
  return value.name === 'default' || value.name === '' ? 'Default' : value.name;
}

/** Whether a value belongs in the table: a controller, or a class that contains one. The nested classes of a private
 * class are private too, and so are its subclasses that do not declare otherwise. */
export function isRouted(
  name: string,
  value: unknown,
  within: readonly object[] = [],
): value is ControllerClass {
  if (typeof value !== 'function' || isPrivateName(name) || within.includes(value)) return false;
  if (Reflect.get(value, 'private') === true) return false;
  if (isController(value)) return true;
  const inside = [...within, value];
  return ownEntries(value).some(([key, inner]) => isRouted(key, inner, inside));
}

export function isController(value: object): value is ControllerClass {
  const prototype: unknown = Reflect.get(value, 'prototype');
  return (
    typeof prototype === 'object' &&
    Object.prototype.isPrototypeOf.call(Controller.prototype, prototype as object)
  );
}

/** Static classes of a class, by property name. */
export function nestedClasses(value: object): (readonly [string, ControllerClass])[] {
  return ownEntries(value).flatMap(([key, inner]) =>
    isRouted(key, inner) ? [[key, inner] as const] : [],
  );
}

/** The methods along the class chain below Controller, the nearest one of each name. A method that was passed to `op()`
 * is called on the instance, like the others. */
export function methodsOf(controller: ControllerClass): ReadonlyMap<string, Handler> {
  const methods = new Map<string, Handler>();
  let link: object = controller;
  while (link !== Controller) {
    const own = [
      ...ownEntries(Reflect.get(link, 'prototype') as object),
      ...ownEntries(link).map(([name, value]) => [name, isOp(value) && value.method] as const),
    ];
    for (const [name, value] of own) {
      if (typeof value === 'function' && !methods.has(name)) methods.set(name, value as Handler);
    }
    link = Object.getPrototypeOf(link) as object;
  }
  return methods;
}

/** The class's own members, without those of its bases. */
export function ownEntries(value: object): (readonly [string, unknown])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(value)).flatMap(([key, descriptor]) =>
    key === 'prototype' || key === 'constructor' ? [] : [[key, descriptor.value] as const],
  );
}
