// The base class of everything that is routed. How its subclasses become paths is left to table.ts.
import type { Cors } from './cors.ts';
import type { Guard } from './guard.ts';
import type { OpenApiDocument } from './openapi-document.ts';
import type { ResponseDraft, RoutedRequest } from './request.ts';

export interface ControllerContext {
  readonly request: RoutedRequest;
  readonly response: ResponseDraft;
  /** The OpenAPI document of the application. */
  readonly describe: () => OpenApiDocument;
}

/**
 * Methods are named after HTTP methods (`GET`, `POST`, `ANY`, `POST_reset_all`) and take the
 * keyword arguments as one object, then the positional ones; what they take is declared by a static
 * `op(...)` of the same name. There is one instance per request.
 */
export class Controller {
  /** True on the class itself (not inherited): the class does not exist for routing. */
  static readonly private?: boolean;
  /** Methods without a guard are meant to be open to everybody. */
  static readonly public?: boolean;
  /** Run before the body is read, after those of the application. */
  static readonly guard?: Guard | readonly Guard[];
  /** Which other origins a browser may use this class from; off unless set. */
  static readonly cors?: Cors;

  /** Bodies may be XML beside what the application understands, and answers that are values are XML
   * where the client prefers that to JSON. */
  static readonly xml?: boolean;

  readonly request: RoutedRequest;
  readonly response: ResponseDraft;
  readonly describe: () => OpenApiDocument;

  constructor({ request, response, describe }: ControllerContext) {
    this.request = request;
    this.response = response;
    this.describe = describe;
  }
}
