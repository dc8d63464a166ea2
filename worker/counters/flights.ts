// The batches that are under way, each on its lane, which carries one at a time. How operations become
// commands, and how a connection is kept, is left to the lane.
import type { Batch, Operation, Reply } from './batch.ts';

export interface Lane {
  /** Connected, so that a batch can be written now. */
  readonly ready: boolean;
  /**
   * Writes the operations, in order. `done` is called exactly once, never from inside `send`, with
   * one reply for each operation, also when the connection is lost. Nothing is ever sent twice.
   * `onAnswer` is called before, if the server has answered: what it named other servers for may still
   * be waited for then.
   */
  send(
    operations: readonly Operation[],
    done: (replies: Reply[]) => void,
    onAnswer: () => void,
  ): void;
  /** Gives the connection up, because it does not answer, and connects anew. */
  reset(reason: string): void;
}

export interface Flight {
  readonly lane: Lane;
  batch: Batch;
  /** When its last operations were written. */
  writtenMs: number;
  /** The server has answered those; of a cluster, other nodes may still be asked in its place. */
  isAnswered: boolean;
}

/**
 * A plain list, because they are few. A map in which batches come and go for ever would make itself
 * anew every few of them, and each of its former tables keeps what was in it, and the next table, until
 * the next full collection: so all batches would grow old.
 */
export class Flights {
  readonly #flights: Flight[] = [];

  get size(): number {
    return this.#flights.length;
  }

  has(lane: Lane): boolean {
    for (const flight of this.#flights) if (flight.lane === lane) return true;
    return false;
  }

  add(flight: Flight): void {
    this.#flights.push(flight);
  }

  remove(lane: Lane): void {
    const flights = this.#flights;
    const place = flights.findIndex((flight) => flight.lane === lane);
    const last = place === -1 ? undefined : flights.pop();
    // Their order means nothing.
    if (last !== undefined && place < flights.length) flights[place] = last;
  }

  /** As they are now: some may end while the list is gone through. */
  list(): readonly Flight[] {
    return [...this.#flights];
  }
}
