// The module `_folder` speaks for every controller in its folder and below: who may call, which limits hold, and
// what is done before and after a method (behaviour: folders).

import { type Cors, corsProblem, toCorsArounds } from './cors.ts';
import { areGuards, type Guard } from './guard.ts';
import { type MethodLimits, methodLimits, refuseWrongLimits } from './limits.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { refuseUnknownNames } from './near-names.ts';
import type { Around, RoutedAnswer, RoutedRequest } from './request/request.ts';

export interface FolderSpec<State extends object> {
  /** Asked after those of the application and of the folders above, before those of classes. */
  readonly guard?: Guard | readonly Guard[];
  /** For classes that do not declare their own. */
  readonly cors?: Cors;
  /** `ignore`: names in a query that a method does not declare are dropped, where `refuse`, the default, answers 400.
   * The query of a GET that declares no names is ignored always. */
  readonly unknownQuery?: 'ignore' | 'refuse';
  /** The limits of a method's own `op` go before these. */
  readonly limits?: Partial<MethodLimits>;
  /** Runs when all guards have let the request pass, the outermost folder's first, before the body is read. What it
   * returns, an object, is in `this.state`; what it throws is the answer. */
  before?(request: RoutedRequest): MaybePromise<State | undefined>;
  /** Surrounds every request below, also one that no method answers; of several the first is outermost. */
  readonly around?: Around | readonly Around[];
  /** Gets every answer below, also refusals and errors: an `around` that changes what `next` has answered. */
  after?(answer: RoutedAnswer, request: RoutedRequest): MaybePromise<void>;
  /** Gets what a guard, a hook or a method has thrown, and refusals of the router itself, such as the 400 for wrong
   * arguments (`BadRequest`), but no `Stop` and `Redirect`; what it returns is taken for
   * thrown instead, if it returns something. It is called before `after`. */
  onError?(error: unknown, request: RoutedRequest): MaybePromise<unknown>;
}

const brand: unique symbol = Symbol('folder');

export interface Folder<State extends object = object> extends FolderSpec<State> {
  readonly [brand]: true;
}

/** One of each kind, by name: a misspelt guard would be one that is never asked. */
const specKinds: Readonly<Record<keyof FolderSpec<object>, unknown>> = {
  guard: undefined,
  cors: undefined,
  limits: {},
  unknownQuery: '',
  before() {},
  around: undefined,
  after() {},
  onError() {},
};

/** Throws a TypeError for a name that it does not have. `export const folder = defineFolder({ guard, before: ... })` in a module `_folder`. */
export function defineFolder<State extends object = object>(
  spec: FolderSpec<State>,
): Folder<State> {
  refuseUnknownNames('defineFolder', spec, specKinds);
  refuseWrongLimits('defineFolder: limits', spec.limits, methodLimits);
  const { unknownQuery = 'refuse' } = spec;
  if (unknownQuery !== 'ignore' && unknownQuery !== 'refuse') {
    throw new TypeError(`defineFolder: unknownQuery is 'ignore' or 'refuse'`);
  }
  return Object.freeze({ ...spec, [brand]: true as const });
}

/** The type of the state that `before` returns: `class Notes extends Controller<StateOf<typeof folder>>`. */
export type StateOf<Declared> = Declared extends Folder<infer State> ? State : never;

export function isFolder(value: unknown): value is Folder {
  return typeof value === 'object' && value !== null && brand in value;
}

/** What is wrong with a folder, which would otherwise fail, or not hold, at a request. */
export function folderProblem({ guard, cors, around }: Folder): string | undefined {
  if (!areGuards(guard)) return 'its guard is not made by bearer(), basic() or the like';
  return corsProblem(cors) ?? aroundProblem(around);
}

export function aroundProblem(around: unknown): string | undefined {
  const isRight = [around ?? []].flat().every((one) => typeof one === 'function');
  return isRight ? undefined : 'around is a function (next, request), or a list of them';
}

/** What surrounds the classes below these folders, the outermost first. */
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
