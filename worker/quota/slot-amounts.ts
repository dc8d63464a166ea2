// An amount of one server in counters of a store that several servers share: in time slots, so that it ends by itself
// when it is not renewed.

import { type Hit, toMapKey } from '../counters/store.ts';

export const slotSeconds = 5;

interface Change {
  readonly slot: number;
  /** The amount of this server before and after it. */
  readonly before: number;
  readonly amount: number;
  readonly hit: Hit;
}

/**
 * The amount is in one counter for each slot up to `aheadSeconds` from now: at 12 s, with 18 s ahead, in those of the
 * slots 2 (10 s to 15 s) to 6 (30 s to 35 s). The counter of the current slot is the sum of all servers.
 */
export class SlotAmounts {
  readonly #name: string;
  readonly #aheadSeconds: number;
  readonly #lifetimeSeconds: number;
  #windowStart = 0;
  /** What the store has of this server, by slot. */
  readonly #amounts = new Map<number, number>();
  /** Changes without an answer. */
  #sent: Change[] = [];

  /** `lifetimeSeconds`: of the counters, longer than any amount in them. */
  constructor(name: string, aheadSeconds: number, lifetimeSeconds: number) {
    this.#name = name;
    this.#aheadSeconds = aheadSeconds;
    this.#lifetimeSeconds = lifetimeSeconds;
  }

  /** Starts a new window, which has counters of its own. */
  begin(windowStart: number): void {
    this.#windowStart = windowStart;
    this.#amounts.clear();
  }

  /** Whether the store has this amount in each slot. */
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

  /** Withdraws the amounts in the slot of this time and all later ones. */
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
    const key = `${this.#name}.${this.#windowStart}.${slot}`;
    const hit = toHit(key, amount - before, this.#lifetimeSeconds);
    this.#sent.push({ slot, before, amount, hit });
  }

  /**
   * Call it when the changes were counted. `others`: the highest amount of all other servers in any slot. `isLost`: the
   * store has less than this server added, or is known to have lost all data.
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

  /** Treats additions as not counted, and refunds as counted: others never get too much. */
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

function toHit(key: string, change: number, windowSeconds: number): Hit {
  return {
    key,
    mapKey: toMapKey(key),
    hits: Math.abs(change),
    exactHits: undefined,
    refund: change < 0,
    limit: Number.MAX_SAFE_INTEGER,
    windowSeconds,
    limiter: undefined,
    lease: undefined,
    unit: 'second',
    descriptorIndex: 0,
    stopsOthers: 'never',
    after: -1,
  };
}
