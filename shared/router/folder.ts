// The module `_folder` configures every controller in its folder and below: who can call it, which limits apply, and
// what runs before and after a method (behaviour: folders).

import { type Cors, toCorsArounds } from './cors.ts';
import type { Guard } from './guard.ts';
import { type MethodLimits, methodLimits, refuseWrongLimits } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { refuseUnknownNames } from './near-names.ts';
import type { Around, RoutedAnswer, RoutedRequest } from './request/request.ts';

export interface FolderSpec<State extends object> {
  /** Guards that run after those of the application and of the folders above, and before those of classes. */
  readonly guard?: Guard | readonly Guard[];
  /** The default for classes that do not declare their own. */
  readonly cors?: Cors;
  /** `ignore`: undeclared names in a query are dropped; `refuse`, the default: they are answered 400. The query of a
   * GET that declares no names is always ignored. */
  readonly unknownQuery?: 'ignore' | 'refuse';
  /** The limits in a method's own `op` override these. */
  readonly limits?: Partial<MethodLimits>;
  /** Runs once all guards have admitted the request, the outermost folder's first, before the body is read. The object
   * that it returns is in `this.state`; what it throws is the answer. */
  before?(request: RoutedRequest): MaybePromise<State | undefined>;
  /** Surrounds every request below, even if no method answers it; the first of several is outermost. */
  readonly around?: Around | readonly Around[];
  /** Receives every answer below, including refusals and errors: an `around` that changes what `next` has answered. */
  after?(answer: RoutedAnswer, request: RoutedRequest): MaybePromise<void>;
  /** Receives what a guard, a hook or a method has thrown, and refusals of the router itself, such as the 400 for
   * invalid arguments (`BadRequest`), but not `Stop` and `Redirect`; if it returns a value, that replaces the thrown
   * one. It is called before `after`. */
  onError?(error: unknown, request: RoutedRequest): MaybePromise<unknown>;
}

const brand: unique symbol = Symbol('folder');

export interface Folder<State extends object = object> extends FolderSpec<State> {
  readonly [brand]: true;
}

/** With a misspelt name, a guard would never run. */
const specNames: readonly (keyof FolderSpec<object>)[] = [
  ...(['guard', 'cors', 'limits', 'unknownQuery', 'before', 'around', 'after', 'onError'] as const),
];

/** Throws a TypeError for an unknown member. `export const folder = defineFolder({ guard, before: ... })` in a module
 * `_folder`. */
export function defineFolder<State extends object = object>(
  spec: FolderSpec<State>,
): Folder<State> {
  refuseUnknownNames('defineFolder', spec, specNames);
  refuseWrongLimits('defineFolder: limits', spec.limits, methodLimits);
  return Object.freeze({ ...spec, [brand]: true as const });
}

/** The type of the state that `before` returns: `class Notes extends Controller<StateOf<typeof folder>>`. */
export type StateOf<Declared> = Declared extends Folder<infer State> ? State : never;

export function isFolder(value: unknown): value is Folder {
  return typeof value === 'object' && value !== null && brand in value;
}

/** The arounds of the classes below these folders, outermost first. */
export function toArounds(
  common: Around | readonly Around[] | undefined,
  folders: readonly Folder[],
  cors: Cors | undefined,
): readonly Around[] {
  const arounds = [...[common ?? []].flat(), ...folders.flatMap(aroundsOf)];
  if (cors === undefined) return arounds;
  const { outer, inner } = toCorsArounds(cors);
  return [outer, ...arounds, inner];
}

function aroundsOf({ around, after, onError }: Folder): readonly Around[] {
  const arounds = [...[around ?? []].flat()];
  if (after !== undefined) {
    arounds.push(async (next, request) => {
      const answer = await next();
      await after(answer, request);
      return answer;
    });
  }
  if (onError !== undefined) {
    arounds.push(async (next, request) => {
      const answer = await next();
      const { error } = answer;
      const thrown = error === undefined ? error : ((await onError(error, request)) ?? error);
      if (thrown !== error) throw thrown;
      return answer;
    });
  }
  return arounds;
}
