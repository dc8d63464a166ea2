// The limits of one request (behaviour: bounds). Servers have their own time limits of connections.
import { refuseUnknownNames } from './near-names.ts';

/** Each can be set per application; counts and bytes are inclusive. */
export const defaultLimits = {
  /** Bytes of the request target without scheme and host; more returns 414.
   * @default 8 KiB */
  targetBytes: 8 * 1024,
  /** More returns 400.
   * @default 32 */
  pathParts: 32,
  /** Names in a query or a form; the names of a JSON object are only bounded by its bytes.
   * @default 100 */
  keys: 100,
  /** Values of one name, and items of a list whose schema has no `maxItems`.
   * @default 1,000 */
  listItems: 1000,
  /** Nesting of objects and lists in JSON, and of elements in XML.
   * @default 32 */
  jsonDepth: 32,
  /** Elements and attributes of an XML body, with its comments and the like.
   * @default 10,000 */
  xmlNodes: 10_000,
  /** More returns 413, and the rest of the body is discarded. A body that its method does not accept has a smaller limit.
   * @default 1 MiB */
  bodyBytes: 1024 * 1024,
  /** Fields and files of a form; more return 400.
   * @default 20 */
  multipartParts: 20,
  /** Open at a time: events and WebSockets together; more return 503.
   * @default 1,000 */
  liveConnections: 1000,
  /** Bytes of one message of a WebSocket; more closes it with 1009.
   * @default 64 KiB */
  messageBytes: 64 * 1024,
  /** Bytes that can wait for the reader of a WebSocket; a slower reader is cut off.
   * @default 1 MiB */
  queuedBytes: 1024 * 1024,
  /** After this silence events send a comment, and WebSockets a ping; a client that does not
   * answer before the next is cut off.
   * @default 15 s */
  heartbeatMs: 15_000,
  /** Time from the first wait for the body to its end; more returns 408.
   * @default 30 s */
  bodyTimeoutMs: 30_000,
  /** Time from the call of a method until it returns, including what it waits for; then its `request.signal` is
   * aborted, and the answer is 503. Infinity: no bound.
   * @default Infinity */
  methodTimeoutMs: Number.POSITIVE_INFINITY,
} as const;

export type Limits = { readonly [Name in keyof typeof defaultLimits]: number };

const { targetBytes, pathParts, liveConnections, messageBytes, ...ofMethods } = defaultLimits;

/** The limits that a folder or a method can set; the others apply before the method of a request is known. */
export const methodLimits = ofMethods;

export type MethodLimits = { readonly [Name in keyof typeof methodLimits]: number };

/** Throws a TypeError for a name that is not in `known`, and for an invalid limit. */
export function refuseWrongLimits(what: string, given: object = {}, known: object): void {
  refuseUnknownNames(what, given, Object.keys(known));
  for (const [name, value] of Object.entries(given)) {
    if (value >= 0) continue;
    throw new TypeError(`${what}: ${name} is a number that is not negative, not ${value}`);
  }
}
