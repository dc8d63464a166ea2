// How much one request may ask about. A request is refused where it is decoded, whatever its encoding, so
// that what is beyond the bounds is never made.

export interface RequestBounds {
  /** Of a request. */
  readonly maxDescriptors: number;
  /** Of all descriptors of a request together. */
  readonly maxEntries: number;
}

/** Far above what proxies ask: a request of Envoy has a descriptor for each of a route's actions. */
export const defaultRequestBounds: RequestBounds = { maxDescriptors: 1000, maxEntries: 10_000 };

/** The request asks about more than it may. */
export class RequestTooLarge extends Error {}

export function tooManyDescriptors({ maxDescriptors }: RequestBounds): RequestTooLarge {
  return new RequestTooLarge(
    `the request has more than ${maxDescriptors} descriptors; REQUEST_MAX_DESCRIPTORS sets how many there may be`,
  );
}

export function tooManyEntries({ maxEntries }: RequestBounds): RequestTooLarge {
  return new RequestTooLarge(
    `the request has more than ${maxEntries} entries; REQUEST_MAX_ENTRIES sets how many there may be`,
  );
}
