// Limits of one request, in any encoding. A request that exceeds them is refused during decoding, so that nothing
// beyond the limits is allocated.

export interface RequestBounds {
  /** The most descriptors of a request. */
  readonly maxDescriptors: number;
  /** The most entries of all descriptors of a request together. */
  readonly maxEntries: number;
  /** The treatment of requests with bytes that are not UTF-8 (REQUEST_INVALID_UTF8). */
  readonly invalidUtf8: 'fail' | 'count';
}

/**
 * Far above what proxies send: a request of Envoy has a descriptor for each of a route's actions. All other requests
 * wait while one is processed.
 */
export const defaultRequestBounds: RequestBounds = {
  maxDescriptors: 256,
  maxEntries: 2560,
  invalidUtf8: 'fail',
};

/**
 * The most bytes of a message or body: a request of Envoy contains parts of the headers that Envoy received, by default
 * up to 60 KiB.
 */
export const maxRequestBytes = 524_288;

/** The request exceeds its limits. */
export class RequestTooLarge extends Error {}

export function tooManyDescriptors({ maxDescriptors }: RequestBounds): RequestTooLarge {
  return new RequestTooLarge(
    `the request has more than ${maxDescriptors} descriptors; REQUEST_MAX_DESCRIPTORS sets the maximum`,
  );
}

export function tooManyEntries({ maxEntries }: RequestBounds): RequestTooLarge {
  return new RequestTooLarge(
    `the request has more than ${maxEntries} entries; REQUEST_MAX_ENTRIES sets the maximum`,
  );
}
