// The part of a limit that this server assigns. Several servers on one store divide the limit: each has its part as a
// lease in the store, and the parts together never exceed the limit (behaviour: quota-service).
//
// At each count of the pool: `register` publishes the demand of this server and renews the lease; `registered` reads
// the demands and the leases of the others; if `wantsMore`, `book` asks the store for more, and `booked` accepts what
// was free. When assignments change, `retain` and `use` return what is no longer assigned.
//
// For example, two servers divide 100 requests per second; one demands 100 of them, the other 25:
// 1. The first is alone: its target is 100. Nothing is leased, so it wants 100, and gets them.
// 2. The second registers. Its target is 20 (25 of 125), but nothing is free: it may assign 0.
// 3. The first reads that others demand 25. Its target is 80: it assigns no more (`toCapacity`), and returns 20 as soon
//    as they are not assigned (`retain`).
// 4. The second finds 20 free, and gets them.

import { hash, randomUUID } from 'node:crypto';
import type { Hit } from '../counters/store.ts';
import { SlotAmounts, slotSeconds } from './slot-amounts.ts';

/**
 * A lease outlives what was assigned from it: Envoy's assignments live for 15 s, a count is due each second, and the
 * clocks of two servers may differ by a second.
 */
const leaseSeconds = 18;
/** A demand is published until the end of the next slot. */
const demandSeconds = slotSeconds;
/** A published demand is a number of millionths of the limit. */
const million = 1_000_000;
/** The counter of demands also has the number of servers: each adds its demand times this, and 1 for itself. */
const mostServers = 1_024;
/** A lease stays unchanged if it differs from its target by less than this fraction of the divided total. */
const tolerance = 0.01;

export interface Divided {
  /** What all servers may assign together, in requests. */
  readonly total: number;
  readonly limit: number;
  /** The demand, as a fraction of the limit, is for this many windows. */
  readonly windows: number;
}

/**
 * A part of the limit, changed by requests to the store: send the hits that a method returns, and call `registered`,
 * `booked` or `failed` when they are settled.
 */
export class Lease {
  /** The demands of all servers, and their number. */
  readonly #demands: SlotAmounts;
  /** The leases of all servers. */
  readonly #leases: SlotAmounts;
  /** 1 of this server alone. When it is missing the store has lost all data, which the registrations of others may
   * hide in the shared counters. */
  readonly #mark: SlotAmounts;
  /** The demand of this server in millionths of the limit. */
  #demand = 0;
  /** Requests that this server may assign: its lease. */
  #assignable = 0;
  /** Further requests that this server asks for. */
  #wanted = 0;
  /** What the lease should be by the demands of all servers. */
  #target = Number.POSITIVE_INFINITY;
  /** `#target` as a fraction of the divided total. */
  #targetFraction = 1;
  /** The tolerance in requests. */
  #tolerated = 0;
  #isLeased = false;

  /** `name` identifies the counter. */
  constructor(prefix: string, name: string) {
    const id = `${prefix}${hash('sha256', name)}`;
    // Servers stop and start, so a counter outlives the longest lease in it.
    const lifetimeSeconds = leaseSeconds + 3 * slotSeconds;
    const amounts = (key: string, aheadSeconds: number) =>
      new SlotAmounts(`${id}.${key}`, aheadSeconds, lifetimeSeconds);
    this.#demands = amounts('asked', demandSeconds);
    this.#leases = amounts('leased', leaseSeconds);
    this.#mark = amounts(randomUUID().slice(0, 8), demandSeconds);
  }

  /** Starts a new window, which has its own leases. */
  begin(windowStart: number): void {
    this.#leases.begin(windowStart);
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
    if (!this.#isLeased) return Math.ceil(full * this.#targetFraction);
    return Math.min(full, this.#exceedsTarget ? this.#target : this.#assignable);
  }

  /** Registers the demand of this server, as a fraction of the limit, and renews the lease. */
  register(nowSeconds: number, need: number): readonly Hit[] {
    this.#demand = Math.round(Math.min(1, need) * million);
    const amount = this.#demand * mostServers + 1;
    return [
      ...this.#mark.toHits(nowSeconds, 1),
      ...this.#demands.toHits(nowSeconds, amount),
      ...this.book(nowSeconds),
    ];
  }

  registered({ total, limit, windows }: Divided): void {
    const isAllLost = this.#mark.answered().isLost;
    const demands = this.#demands.answered(isAllLost);
    const leases = this.#leases.answered(isAllLost);
    const unit = (limit * windows) / million;
    const target = toTarget(total, {
      own: this.#demand * unit,
      others: Math.floor(demands.others / mostServers) * unit,
      servers: 1 + (demands.others % mostServers),
    });
    this.#target = Math.ceil(target);
    this.#tolerated = total * tolerance;
    if (total > 0) this.#targetFraction = Math.min(1, target / total);
    const lacking = this.#target - this.#assignable;
    const free = Math.floor(total - leases.others - this.#assignable);
    const isShort = lacking > (this.#assignable === 0 ? 0 : this.#tolerated);
    // After the store has lost all registrations, the leases of others must be restored first.
    const mustWait = this.#isLeased && (demands.isLost || leases.isLost);
    this.#wanted = isShort && !mustWait ? Math.max(0, Math.min(lacking, free)) : 0;
    if (this.#wanted === 0) this.#isLeased = true;
  }

  /** Changes the lease in the store to what is assignable and wanted. */
  book(nowSeconds: number): readonly Hit[] {
    return this.#leases.toHits(nowSeconds, this.#assignable + this.#wanted);
  }

  /** Others may have booked at the same time: of 20 wanted, with 15 free, 5 are too many and the next `book` returns them. */
  booked(total: number): void {
    const { others } = this.#leases.answered();
    const excess = Math.max(0, this.#assignable + this.#wanted + others - total);
    this.#assignable += Math.max(0, this.#wanted - Math.ceil(excess));
    this.#wanted = 0;
    this.#isLeased = true;
  }

  /** Call it when it is unknown what the store has counted. */
  failed(): void {
    this.#mark.failed();
    this.#demands.failed();
    this.#leases.failed();
    this.#wanted = 0;
  }

  /** `assigned` requests are assigned: what is assignable above these and the target is returned for others. */
  retain(assigned: number): void {
    if (!this.#isLeased || !this.#exceedsTarget) return;
    this.#assignable = Math.min(this.#assignable, Math.max(Math.ceil(assigned), this.#target));
  }

  /** `requests` of the assigned ones were used, and `assigned` still are. */
  use(requests: number, assigned: number): void {
    this.#assignable = Math.max(
      Math.min(this.#assignable, Math.ceil(assigned)),
      this.#assignable - requests,
    );
  }

  get #exceedsTarget(): boolean {
    return this.#assignable - this.#target > this.#tolerated;
  }

  /** Whether the lease in the store is exactly what is assignable. */
  isBooked(nowSeconds: number): boolean {
    return this.#leases.has(nowSeconds, this.#assignable);
  }

  /**
   * This server has no more demand. The lease ends at once, or after an interval during which callers still use their
   * assignments.
   */
  leave(nowSeconds: number, isAtOnce: boolean): readonly Hit[] {
    this.#assignable = 0;
    this.#wanted = 0;
    const endSeconds = isAtOnce ? nowSeconds : nowSeconds + 2 * slotSeconds;
    return [...this.#demands.toEnd(nowSeconds), ...this.#leases.toEnd(endSeconds)];
  }
}

interface Demands {
  /** Of this server, in requests. */
  readonly own: number;
  readonly others: number;
  /** The number of servers, with this one. */
  readonly servers: number;
}

/**
 * What one server should have. Demands of 100 and 25 for 100 requests are met in proportion, by 80 and 20; demands of
 * 50 and 20 are met, and the other 30 are divided equally: 65 and 35.
 */
function toTarget(total: number, { own, others, servers }: Demands): number {
  const all = own + others;
  return all >= total ? (total * own) / (all || 1) : own + (total - all) / servers;
}
