// The base class of all controllers. table.ts turns subclasses into paths.
import type { Cors } from './cors.ts';
import type { Guard } from './guard.ts';
import type { ResponseDraft, RoutedRequest } from './request/request.ts';

/** Plain JSON, of the shape that OpenAPI gives it. */
export type OpenApiDocument = { readonly [name: string]: unknown };

/** What an application adds to the document that its controllers make. */
export interface OpenApiFrame {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly license?: { readonly name: string; readonly identifier?: string };
  };
  readonly servers: readonly { readonly url: string; readonly description?: string }[];
  /** Paths that are served beside the application, as OpenAPI's path items. */
  readonly otherPaths: Readonly<Record<string, unknown>>;
}

/** A WebSocket as its class sees it, `this.socket`. */
export interface Socket {
  /** The subprotocol of `static protocols` that was chosen; empty for none. */
  readonly protocol: string;
  /** Bytes as they are, in a binary message, any other value as JSON. Before the connection is open it waits until then; after its end nothing is sent. A reader who is so
   * slow that more than `limits.queuedBytes` wait for it is cut off. */
  send(value: unknown): void;
  /** 1000 is the usual end; 3000 to 4999 have the meaning that an application gives them. */
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
  /** True: the class is not routed, nor are its subclasses, unless they declare `false`; a base for them is declared
   * `private: boolean = true`. */
  static readonly private?: boolean;
  /** Run before the body is read, after those of the application, of enclosing classes and of base classes: none
   * of these is replaced. `open()` where every caller can call. */
  static readonly guard?: Guard | readonly Guard[];
  /** Origins from which browsers may use this class; none by default. */
  static readonly cors?: Cors;

  /** Of a class with CONNECT: its WebSocket subprotocols, the best first. The first that a client offers is chosen; one
   * who offers only others is refused, 400. */
  static readonly protocols?: readonly string[];

  /** Also accepts XML bodies, and answers values in XML where the client prefers that to JSON. */
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

  /** The facts that the folders above have found out; give its type with `Controller<StateOf<typeof folder>>`. */
  get state(): State {
    return this.request.state as State;
  }

  /** The WebSocket of this instance. Throws a TypeError in a class without CONNECT. */
  get socket(): Socket {
    if (this.#socket === undefined) throw new TypeError('only a class with CONNECT has a socket');
    return this.#socket;
  }
}
