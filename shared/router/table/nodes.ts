// What the routing table is made of: modules, their classes, and the route of each method. table.ts builds it.
import type { Binder } from '../arguments/bind.ts';
import type { Handler } from '../controller.ts';
import type { Cors } from '../cors.ts';
import type { Folder } from '../folder.ts';
import type { Limits } from '../limits.ts';
import type { SocketClass } from '../live/open-socket.ts';
import type { Op } from '../op.ts';
import type { Around } from '../request/request.ts';
import type { ControllerClass } from './controller-class.ts';
import type { RouteGuards } from './route-guards.ts';
import type { Verb } from './verb.ts';

export interface ModuleNode {
  /** Those that hold for its path, the outermost first. */
  folders: readonly Folder[];
  /** What surrounds the requests below its path that name no class. */
  arounds: readonly Around[];
  readonly modules: Map<string, ModuleNode>;
  readonly classes: Map<string, ClassNode>;
  /** The class Default. */
  fallback: ClassNode | undefined;
  /** The folder `[id]`: it stands below any part that names nothing here. */
  parameter: { readonly name: string; readonly node: ModuleNode } | undefined;
}

export interface ClassNode {
  /** `<module>:<Class>`, human-readable. */
  readonly name: string;
  /** Where its module was read from, if it was. */
  readonly file: string | undefined;
  readonly cors: Cors | undefined;
  /** It declares `cors` itself: its OPTIONS is for preflights alone, as the convention has it. */
  readonly isForPreflights: boolean;
  /** What surrounds the requests that name it and none of its methods. */
  readonly arounds: readonly Around[];
  /** Nested classes, and verbs with a suffix. */
  readonly children: Map<string, ClassNode>;
  readonly verbs: Map<string, Route>;
  /** By the method of a request. */
  readonly answers: Map<string, Route>;
}

export interface Route extends RouteGuards {
  readonly verb: Verb;
  /** `<module>:<Class>.<method>`, human-readable. */
  readonly name: string;
  /** Its class. */
  readonly owner: ClassNode;
  /** The module's path; empty for the root. */
  readonly module: string;
  readonly op: Op | undefined;
  /** What surrounds it, the outermost first. */
  readonly arounds: readonly Around[];
  readonly binder: Binder;
  /** Its class allows it. */
  readonly xml: boolean;
  /** Conditions of the request are checked before it runs, by the tag of GET. */
  readonly isConditional: boolean;
  /** By status: a value without what is not declared. */
  readonly filters: ReadonlyMap<number, (value: unknown) => unknown> | undefined;
  /** Its answers are JSON or XML, as the client prefers. */
  readonly negotiated: boolean;
  /** Set for a method that takes its body unparsed: as bytes, or as a stream. */
  readonly unparsed: 'raw' | 'stream' | undefined;
  /** Media type from the class's extension, where the method declares a result. */
  readonly mediaType: string | undefined;
  /** The folders that hold here, the outermost first. */
  readonly folders: readonly Folder[];
  readonly limits: Limits;
  /** Set for a class with CONNECT, whose connections stay open. */
  readonly socket?: SocketClass;
  readonly controller: ControllerClass;
  /** Called on an instance of it. */
  readonly handler: Handler;
}
