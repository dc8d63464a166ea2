// Changes of counters that a server has not confirmed yet: in order and one at a time for each key, and merged where
// that makes no difference. The lane sends them.
import { addHits, type CounterValue, refundHits } from './counter-value.ts';

export interface Change {
  readonly kind: 'add' | 'refund';
  readonly key: string;
  /** The longest window of its hits. */
  windowSeconds: number;
  /** A bigint only above 2^53. */
  amount: number | bigint;
  /** True when its first command was sent: no more hits may be merged into it. */
  isWritten: boolean;
}

export interface PendingChanges {
  /** Includes those sent and not answered. */
  readonly size: number;
  /** False when there is no room; the change is then dropped. */
  push(kind: Change['kind'], key: string, amount: number | bigint, windowSeconds: number): boolean;
  /** The changes that may be sent now, in order. The caller marks each as written, and finishes it. */
  removeWritable(): Change[];
  /** Call it when the outcome is known: the next change of the key may then be sent. */
  finish(change: Change): void;
  /** The counter after all pending changes, if it is `value` now. */
  project(key: string, value: CounterValue): CounterValue;
  /** Drops the changes that were not sent, and returns them. */
  dropUnwritten(): Change[];
}

/** As in batches of the other stores: changes of up to this many hits are merged, with sums below 2^53. */
const maxJoinedHits = 2 ** 31;
const sumBound = 2 ** 53;

export function createPendingChanges(maxChanges: number): PendingChanges {
  /**
   * Replaced whenever it is empty: V8 rebuilds the table of a Map whose entries are added and removed often, and each
   * old table would retain its entries until the next full collection.
   */
  let byKey = new Map<string, Change[]>();
  let writable: Change[] = [];
  let size = 0;
  return {
    get size() {
      return size;
    },
    push,
    removeWritable,
    finish,
    project,
    dropUnwritten,
  };

  function push(
    kind: Change['kind'],
    key: string,
    amount: number | bigint,
    windowSeconds: number,
  ): boolean {
    const changes = byKey.get(key);
    const last = changes?.at(-1);
    if (last !== undefined && kind === 'add' && join(last, amount, windowSeconds)) return true;
    if (size >= maxChanges) return false;
    const change: Change = { kind, key, windowSeconds, amount, isWritten: false };
    size++;
    if (changes === undefined) {
      byKey.set(key, [change]);
      writable.push(change);
    } else {
      changes.push(change);
    }
    return true;
  }

  function join(last: Change, amount: number | bigint, windowSeconds: number): boolean {
    if (last.kind !== 'add' || last.isWritten) return false;
    if (typeof amount === 'bigint' || typeof last.amount === 'bigint') return false;
    if (amount > maxJoinedHits || last.amount + amount >= sumBound) return false;
    last.amount += amount;
    if (windowSeconds > last.windowSeconds) last.windowSeconds = windowSeconds;
    return true;
  }

  function removeWritable(): Change[] {
    const removed = writable;
    writable = [];
    return removed;
  }

  function finish(change: Change): void {
    const changes = byKey.get(change.key);
    if (changes?.[0] !== change) return;
    changes.shift();
    size--;
    const [next] = changes;
    if (next !== undefined) writable.push(next);
    else {
      byKey.delete(change.key);
      if (byKey.size === 0) byKey = new Map();
    }
  }

  function project(key: string, value: CounterValue): CounterValue {
    let projected = value;
    for (const { kind, amount } of byKey.get(key) ?? []) {
      // A change that would exceed the bound leaves the counter unchanged.
      projected =
        kind === 'add' ? (addHits(projected, amount) ?? projected) : refundHits(projected, amount);
    }
    return projected;
  }

  function dropUnwritten(): Change[] {
    const dropped: Change[] = [];
    for (const [key, changes] of byKey) {
      const written = changes.filter((change) => change.isWritten);
      dropped.push(...changes.filter((change) => !change.isWritten));
      if (written.length === 0) byKey.delete(key);
      else byKey.set(key, written);
    }
    size -= dropped.length;
    writable = [];
    return dropped;
  }
}
