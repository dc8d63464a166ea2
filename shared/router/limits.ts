// The bounds of what one request may ask for (behaviour: bounds). Time limits of
// connections are the servers' own.

/** All may be set per application; counts and bytes are inclusive. */
export interface Limits {
  /** Of the request target without scheme and host; more is 414. */
  readonly targetBytes: number;
  readonly pathParts: number;
  /** Names in a query or a form; those of a JSON object are bounded by its bytes. */
  readonly keys: number;
  /** Values of one name, and items of one list, wherever it is, whose schema has no `maxItems`. */
  readonly listItems: number;
  /** Of objects and lists within each other in JSON, and of elements in XML. */
  readonly jsonDepth: number;
  /** Elements and attributes of an XML body, with its comments and the like. */
  readonly xmlNodes: number;
  /** More is 413; the body is never held beyond it. Of one that is no argument of its method, less
   * is enough. */
  readonly bodyBytes: number;
  readonly multipartParts: number;
  /** From the first wait for the body to its end; more is 408. */
  readonly bodyTimeoutMs: number;
}

export const defaultLimits: Limits = {
  targetBytes: 8 * 1024,
  pathParts: 32,
  keys: 100,
  listItems: 1000,
  jsonDepth: 32,
  xmlNodes: 10_000,
  bodyBytes: 1024 * 1024,
  multipartParts: 20,
  bodyTimeoutMs: 30_000,
};
