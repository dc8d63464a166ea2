// How much one request may ask about, whatever its encoding. A request is refused where it is decoded, so that
// what is beyond the bounds is never made.

export interface RequestBounds {
  /** Of a request. */
  readonly maxDescriptors: number;
  /** Of all descriptors of a request together. */
  readonly maxEntries: number;
}

/** Far above what proxies ask: a request of Envoy has a descriptor for each of a route's actions. What these
 * take of the event loop is what everybody else waits for. */
export const defaultRequestBounds: RequestBounds = { maxDescriptors: 256, maxEntries: 2560 };

/** Of a message or a body: a request of Envoy holds parts of the headers that it got, of which there are 60 KiB
 * by default. */
export const maxRequestBytes = 524_288;

/** Hits of all requests that wait for the store, about 1 kB each. */
const maxWaitingHits = 65_536;
/** For each hit of a request beyond its first there must be so much more room. */
const roomPerFurtherHit = 64;

/**
 * Whether there is room for a request with so many hits, `waiting` being those that wait for the store, its own
 * included. The more a request asks about the sooner it is refused, so that requests of many descriptors
 * never take the room of those that ask about a few.
 */
export function hasRoomForHits(waiting: number, hits: number): boolean {
  return waiting + (hits - 1) * roomPerFurtherHit <= maxWaitingHits;
}

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
