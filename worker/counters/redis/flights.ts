// The batches in flight, each on its lane, which carries one at a time. Lanes turn operations into
// commands and keep connections.
import type { Batch, Operation, Reply } from './batch.ts';

export interface Lane {
  /** Connected, so that a batch can be written now. */
  readonly ready: boolean;
  /**
   * Writes the operations, in order. `done` is called exactly once, never from inside `send`, with one
   * reply for each operation, also when the connection is lost. Nothing is ever sent twice. `onAnswer` is
   * called before, when the server has answered; answers of servers to which it redirected commands may
   * then still be missing.
   */
  send(
    operations: readonly Operation[],
    done: (replies: Reply[]) => void,
    onAnswer: () => void,
  ): void;
  /** Drops the connection, which does not answer, and reconnects. */
  reset(reason: string): void;
}

export interface Flight {
  readonly lane: Lane;
  batch: Batch;
  /** When its last operations were sent. */
  writtenMs: number;
  /** The server has answered; other cluster nodes may still have to. */
  isAnswered: boolean;
}

/**
 * A plain list, because they are few. V8 rebuilds the table of a Map whose entries come and go, and each
 * old table keeps its entries and the next table alive until the next full collection: all batches would
 * be promoted to the old generation.
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
    // In no particular order.
    if (last !== undefined && place < flights.length) flights[place] = last;
  }

  /** A copy: flights may end during the iteration. */
  list(): readonly Flight[] {
    return [...this.#flights];
  }
}
