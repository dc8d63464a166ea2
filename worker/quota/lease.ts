// The part of a limit that this server assigns. Several servers on one store divide the limit: each holds its part as a
// lease in the store, and the parts together never exceed the limit (behaviour: quota-service).
//
// At each count of the pool: `register` publishes the demand of this server and renews the lease; `registered` reads
// the demand and the leases of the others; `book` asks the store for more if `wantsMore`; `booked` keeps what was free.
// When assignments change, `retain` and `use` return what is no longer assigned.

import { hash, randomUUID } from 'node:crypto';
import { type Hit, toMapKey } from '../counters/store.ts';

const slotSeconds = 5;
/**
 * A lease outlives what was assigned from it: Envoy's assignments live for 15 s, a count is due each second, and the
 * clocks of two servers may differ by a second.
 */
const leaseSeconds = 18;
const askedSeconds = slotSeconds;
/** The lifetime of the amounts in the store: servers stop and start. */
const lifetimeSeconds = leaseSeconds + 3 * slotSeconds;
/** The unit in which a server states its demand, as a fraction of the limit. */
const million = 1_000_000;
/** One counter has both sums: the demand times this number, and 1 for each server. */
const mostServers = 1_024;
/** A lease stays unchanged if it differs from its target by less than this fraction of the divided total. */
const slack = 0.01;

export interface Divided {
  /** What all servers may assign together, in requests. */
  readonly total: number;
  readonly limit: number;
  /** The demand, as a fraction of the limit, is for this many windows. */
  readonly windows: number;
}

/**
 * A part of the limit, changed by requests to the store: call `toHits` methods, and `answered` or `failed` when these
 * are settled.
 */
export class Lease {
  readonly #asked: SlotAmounts;
  readonly #leased: SlotAmounts;
  /**
   * 1 in a counter to which no other server adds: registrations by others after the store has lost all data cannot hide
   * the loss there.
   */
  readonly #own: SlotAmounts;
  #need = 0;
  /** Requests that this server may assign. */
  #assignable = 0;
  /** Requests above `#held` that this server asks for. */
  #wanted = 0;
  #target = Number.POSITIVE_INFINITY;
  #slack = 0;
  /** `#target` as a fraction of the total. */
  #part = 1;
  #isLeased = false;

  /** `name` identifies the counter. */
  constructor(prefix: string, name: string) {
    const id = `${prefix}${hash('sha256', name)}`;
    this.#asked = new SlotAmounts(`${id}.asked`, askedSeconds);
    this.#leased = new SlotAmounts(`${id}.leased`, leaseSeconds);
    this.#own = new SlotAmounts(`${id}.${randomUUID().slice(0, 8)}`, askedSeconds);
  }

  /** Starts a new window, which has its own leases. */
  begin(windowStart: number): void {
    this.#leased.begin(windowStart);
    this.#assignable = 0;
    this.#wanted = 0;
    this.#isLeased = false;
  }

  /** Whether the number of requests that this server may assign is known. */
  get isLeased(): boolean {
    return this.#isLeased;
  }

  /** Whether the store must be asked for more before anything is assigned. */
  get wantsMore(): boolean {
    return this.#wanted > 0;
  }

  /** The part of `full` that this server may assign. Without an answer of the store, the same fraction as before. */
  toCapacity(full: number): number {
    if (!this.#isLeased) return Math.ceil(full * this.#part);
    const isMuch = this.#assignable - this.#target > this.#slack;
    return Math.min(full, isMuch ? this.#target : this.#assignable);
  }

  /** Registers the demand of this server, as a fraction of the limit, and renews the lease. */
  register(nowSeconds: number, need: number): readonly Hit[] {
    this.#need = Math.round(Math.min(1, need) * million);
    const amount = this.#need * mostServers + 1;
    return [
      ...this.#own.toHits(nowSeconds, 1),
      ...this.#asked.toHits(nowSeconds, amount),
      ...this.book(nowSeconds),
    ];
  }

  registered({ total, limit, windows }: Divided): void {
    const isAllLost = this.#own.answered().isLost;
    const { others, isLost } = this.#asked.answered(isAllLost);
    const unit = (limit * windows) / million;
    const own = this.#need * unit;
    const all = own + Math.floor(others / mostServers) * unit;
    const servers = 1 + (others % mostServers);
    const target = all >= total ? (total * own) / (all || 1) : own + (total - all) / servers;
    this.#target = Math.ceil(target);
    this.#slack = total * slack;
    this.#part = total > 0 ? Math.min(1, target / total) : this.#part;
    const leased = this.#leased.answered(isAllLost);
    const free = Math.floor(total - leased.others - this.#assignable);
    const isShort = this.#target - this.#assignable > (this.#assignable === 0 ? 0 : this.#slack);
    // After the store has lost all registrations, the leases of others must be restored first.
    const mayGrow = this.#isLeased ? !isLost && !leased.isLost : true;
    this.#wanted =
      isShort && mayGrow ? Math.max(0, Math.min(this.#target - this.#assignable, free)) : 0;
    if (this.#wanted === 0) this.#isLeased = true;
  }

  /** Changes the amount in the store to what is held and wanted. */
  book(nowSeconds: number): readonly Hit[] {
    return this.#leased.toHits(nowSeconds, this.#assignable + this.#wanted);
  }

  booked(total: number): void {
    const { others } = this.#leased.answered();
    const over = Math.max(0, this.#assignable + this.#wanted + others - total);
    this.#assignable += Math.max(0, this.#wanted - Math.ceil(over));
    this.#wanted = 0;
    this.#isLeased = true;
  }

  /** Call it when it is unknown what the store has counted. */
  failed(): void {
    this.#own.failed();
    this.#asked.failed();
    this.#leased.failed();
    this.#wanted = 0;
  }

  /** `assigned` requests are assigned: what is held above these and the target is returned for others. */
  retain(assigned: number): void {
    if (!this.#isLeased || this.#assignable - this.#target <= this.#slack) return;
    this.#assignable = Math.min(this.#assignable, Math.max(Math.ceil(assigned), this.#target));
  }

  /** `requests` of those held were used, and `assigned` are still assigned. */
  use(requests: number, assigned: number): void {
    this.#assignable = Math.max(
      Math.min(this.#assignable, Math.ceil(assigned)),
      this.#assignable - requests,
    );
  }

  /** Whether the store has exactly the amount that is held. */
  isBooked(nowSeconds: number): boolean {
    return this.#leased.has(nowSeconds, this.#assignable);
  }

  /**
   * This server has no more demand. The lease ends at once, or after an interval during which callers still use their
   * assignments.
   */
  leave(nowSeconds: number, isAtOnce: boolean): readonly Hit[] {
    this.#assignable = 0;
    this.#wanted = 0;
    const endSeconds = isAtOnce ? nowSeconds : nowSeconds + 2 * slotSeconds;
    return [...this.#asked.toEnd(nowSeconds), ...this.#leased.toEnd(endSeconds)];
  }
}

/**
 * An amount of this server in counters of the store, one for each slot of time up to `aheadSeconds` from now. The
 * counter of the current slot sums up the amounts of all servers, and an amount that is not renewed ends with its last
 * slot.
 */
class SlotAmounts {
  readonly #name: string;
  readonly #aheadSeconds: number;
  #windowStart = 0;
  readonly #amounts = new Map<number, number>();
  #sent: { slot: number; before: number; amount: number; hit: Hit }[] = [];

  constructor(name: string, aheadSeconds: number) {
    this.#name = name;
    this.#aheadSeconds = aheadSeconds;
  }

  begin(windowStart: number): void {
    this.#windowStart = windowStart;
    this.#amounts.clear();
  }

  has(nowSeconds: number, amount: number): boolean {
    const last = toSlot(nowSeconds + this.#aheadSeconds);
    for (let slot = toSlot(nowSeconds); slot <= last; slot++) {
      if (this.#amounts.get(slot) !== amount) return false;
    }
    return true;
  }

  /** Reads the current slot, and changes all slots to the amount. */
  toHits(nowSeconds: number, amount: number): readonly Hit[] {
    const now = toSlot(nowSeconds);
    for (const slot of this.#amounts.keys()) if (slot < now) this.#amounts.delete(slot);
    const last = toSlot(nowSeconds + this.#aheadSeconds);
    for (let slot = now; slot <= last; slot++) this.#send(slot, amount, slot === now);
    return this.#hits;
  }

  /** Returns the amounts in slots after this time. */
  toEnd(seconds: number): readonly Hit[] {
    const first = toSlot(seconds);
    for (const slot of [...this.#amounts.keys()]) if (slot >= first) this.#send(slot, 0, false);
    return this.#hits;
  }

  get #hits(): readonly Hit[] {
    return this.#sent.map(({ hit }) => hit);
  }

  #send(slot: number, amount: number, reads: boolean): void {
    const before = this.#amounts.get(slot) ?? 0;
    if (amount === before && !reads) return;
    const hit = toHit(`${this.#name}.${this.#windowStart}.${slot}`, amount - before);
    this.#sent.push({ slot, before, amount, hit });
  }

  /**
   * The highest amount of all other servers in any slot. `isLost`: the store has less than this server added, or is
   * known to have lost all data.
   */
  answered(isAllLost = false): { readonly others: number; readonly isLost: boolean } {
    const found = this.#sent.map(({ slot, before, amount, hit }) => {
      const isLost = isAllLost || hit.after < amount;
      // After a loss only the latest addition is left.
      const own = isLost ? Math.max(0, amount - before) : amount;
      return { slot, own, isLost, others: hit.after - own };
    });
    const isLost = found.some((each) => each.isLost);
    // The amounts in the other slots are then lost, too.
    if (isLost) this.#amounts.clear();
    for (const { slot, own } of found) this.#amounts.set(slot, own);
    const others = Math.max(0, ...found.map((each) => each.others));
    this.#sent = [];
    return { others, isLost };
  }

  /** Treats additions as not counted, and refunds as counted: so others never get too much. */
  failed(): void {
    for (const { slot, before, amount } of this.#sent) {
      this.#amounts.set(slot, Math.min(before, amount));
    }
    this.#sent = [];
  }
}

function toSlot(seconds: number): number {
  return Math.floor(seconds / slotSeconds);
}

function toHit(key: string, change: number): Hit {
  return {
    key,
    mapKey: toMapKey(key),
    hits: Math.abs(change),
    exactHits: undefined,
    refund: change < 0,
    limit: Number.MAX_SAFE_INTEGER,
    windowSeconds: lifetimeSeconds,
    limiter: undefined,
    lease: undefined,
    unit: 'second',
    descriptorIndex: 0,
    stopsOthers: 'never',
    after: -1,
  };
}
