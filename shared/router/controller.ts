// The base class of all controllers. table.ts turns subclasses into paths.
import type { Cors } from './cors.ts';
import type { Guard } from './guard.ts';
import type { ResponseDraft, RoutedRequest } from './request/request.ts';

/** Plain JSON, in the structure that OpenAPI defines. */
export type OpenApiDocument = { readonly [name: string]: unknown };

/** What an application adds to the document generated from its controllers. */
export interface OpenApiFrame {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly license?: { readonly name: string; readonly identifier?: string };
  };
  readonly servers: readonly { readonly url: string; readonly description?: string }[];
  /** Paths that are served beside the application, as path items of OpenAPI. */
  readonly otherPaths: Readonly<Record<string, unknown>>;
}

/** A WebSocket as its class sees it, `this.socket`. */
export interface Socket {
  /** The chosen subprotocol of `static protocols`; empty for none. */
  readonly protocol: string;
  /** Sends bytes as a binary message, any other value as JSON. Before the connection is open, messages wait until then;
   * after its end nothing is sent. A reader so slow that more than `limits.queuedBytes` wait for it is cut off. */
  send(value: unknown): void;
  /** 1000 is a normal closure; 3000 to 4999 have the meaning that an application assigns to them. */
  close(code?: number, reason?: string): void;
}

/** A method as it is called, on an instance of its class. */
export type Handler = (...args: readonly unknown[]) => unknown;

export interface ControllerContext {
  readonly request: RoutedRequest;
  readonly response: ResponseDraft;
  /** The OpenAPI document of the application. */
  readonly describe: () => OpenApiDocument;
  /** The connection of a class with CONNECT. */
  readonly socket?: Socket;
}

/**
 * Methods are named after HTTP methods (`GET`, `POST`, `ANY`, `POST_reset_all`) and take the keyword
 * arguments as one object, then the positional ones; a static `op(...)` of the same name declares their
 * parameters. There is one instance per request, and one per WebSocket: a class with `CONNECT`, whose `MESSAGE` and
 * `DISCONNECT` are called for what follows.
 */
export class Controller<State extends object = object> {
  /** True: neither the class nor its subclasses are routed, unless they declare `false`; a base class for such
   * subclasses declares `private: boolean = true`. */
  static readonly private?: boolean;
  /** Guards that run before the body is read, after those of the application, of enclosing classes and of base classes,
   * none of which they replace. `open()` if every caller is allowed. */
  static readonly guard?: Guard | readonly Guard[];
  /** Keeps a guard that is not static, and so would never run, from compiling. */
  declare private readonly guard: never;
  /** Origins from which browsers may use this class; none by default. */
  static readonly cors?: Cors;

  /** For a class with CONNECT: its WebSocket subprotocols, in order of preference. The first one that a client offers
   * is chosen; a client that offers only others is refused with 400. */
  static readonly protocols?: readonly string[];

  /** Also accepts XML bodies, and answers values in XML if the client prefers that to JSON. */
  static readonly xml?: boolean;

  readonly request: RoutedRequest;
  readonly response: ResponseDraft;
  readonly describe: () => OpenApiDocument;
  readonly #socket: Socket | undefined;

  constructor({ request, response, describe, socket }: ControllerContext) {
    this.request = request;
    this.response = response;
    this.describe = describe;
    this.#socket = socket;
  }

  /** The facts that the folders above have determined; declare their type with `Controller<StateOf<typeof folder>>`. */
  get state(): State {
    return this.request.state as State;
  }

  /** The WebSocket of this instance. Throws a TypeError in a class without CONNECT. */
  get socket(): Socket {
    if (this.#socket === undefined) throw new TypeError('only a class with CONNECT has a socket');
    return this.#socket;
  }
}
