// Which resources a client wants, by name or all of them, in both protocols, and the selection of a
// snapshot that it gets.
import { createSnapshot, type Snapshot } from '../snapshot/snapshot.ts';

/** Immutable. */
export interface Subscription {
  /** All resources, whatever their names. */
  readonly wildcard: boolean;
  /** Wanted by name; sorted for state of the world, in the order of asking for delta. */
  readonly names: ReadonlySet<string>;
}

/** The name that stands for all. */
const everyName = '*';

/** The subscription of a stream that has never named anything. */
const everything: Subscription = { wildcard: true, names: new Set() };

/**
 * State of the world: each request names all wanted resources. No name means everything, unless names were
 * given before on this stream: then the client no longer wants anything.
 */
export function toSotwSubscription(
  before: Subscription | undefined,
  names: readonly string[],
): Subscription {
  if (names.length === 0) {
    if (before === undefined || before === everything) return everything;
    return { wildcard: false, names: new Set() };
  }
  if (before !== undefined && isSame(before, names)) return before;
  // "*" stays among the names: it was given, so an empty list afterwards means nothing.
  return { wildcard: names.includes(everyName), names: new Set(names) };
}

export interface DeltaChange {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
}

/** Delta: requests change what is wanted. A first request without names to add means everything. */
export function toDeltaSubscription(
  before: Subscription | undefined,
  { subscribe, unsubscribe }: DeltaChange,
): Subscription {
  if (subscribe.length === 0 && unsubscribe.length === 0) return before ?? everything;
  const names = new Set(before?.names);
  let wildcard = before?.wildcard ?? subscribe.length === 0;
  for (const name of subscribe) {
    if (name === everyName) wildcard = true;
    else names.add(name);
  }
  for (const name of unsubscribe) {
    if (name === everyName) wildcard = false;
    else names.delete(name);
  }
  return { wildcard, names };
}

/** True when the client has unsubscribed from everything. */
export function wantsNothing({ wildcard, names }: Subscription): boolean {
  return !wildcard && names.size === 0;
}

/** For one client: remembers the version of its last selection, but not the selection. */
export class Selector {
  #from: Snapshot | undefined;
  #by: Subscription | undefined;
  #lastVersion = '';

  /** The wanted part of the snapshot, under a version of its own, which changes elsewhere do not affect. The
   * snapshot itself when everything is wanted. */
  select(snapshot: Snapshot, subscription: Subscription): Snapshot {
    if (subscription.wildcard) return snapshot;
    const wanted = createSnapshot(
      Array.from(subscription.names, (name) => snapshot.resources.get(name)).filter(
        (resource) => resource !== undefined,
      ),
    );
    this.#from = snapshot;
    this.#by = subscription;
    this.#lastVersion = wanted.version;
    return wanted;
  }

  /** The version of the wanted part; undefined when nothing is wanted. Makes no selection when called again
   * for the same snapshot. */
  versionOf(snapshot: Snapshot, subscription: Subscription): string | undefined {
    if (subscription.wildcard) return snapshot.version;
    if (wantsNothing(subscription)) return undefined;
    const isKnown = this.#from === snapshot && this.#by === subscription;
    return isKnown ? this.#lastVersion : this.select(snapshot, subscription).version;
  }
}

function isSame({ names }: Subscription, given: readonly string[]): boolean {
  return given.every((name) => names.has(name)) && new Set(given).size === names.size;
}
