// What the batching store needs of a connection: a lane carries one batch at a time. How operations
// become commands, and how a connection is kept, is left to the lane.
import type { AppError } from '../../shared/errors.ts';
import type { Breaker } from './failure/breaker.ts';

/** What is asked of one counter. */
export interface Operation {
  /**
   * - `read`: the counter as it is, 0 when there is none; creates nothing.
   * - `add`: adds, creating the counter with its lifetime, also when the amount is 0.
   * - `refund`: subtracts, stopping at 0; a counter that is missing or not above 0 is left alone.
   */
  readonly kind: 'read' | 'add' | 'refund';
  readonly key: string;
  readonly windowSeconds: number;
  /** An integer >= 0; above 2^53 it is rounded and `exactAmount` has the exact number. */
  amount: number;
  exactAmount: bigint | undefined;
  /** How many hits the amount is the sum of. */
  hitCount: number;
}

/** Why an operation has no result. The other operations of the batch are not concerned. */
export interface Failure {
  readonly error: AppError;
  /** The amount did not fit, so the counter was left as it was. */
  readonly overflow: boolean;
  /** There was no answer: the connection was lost before. */
  readonly lost: boolean;
}

/** The counter after the operation, or why there is none. */
export type Reply = number | Failure;

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

export interface LaneSet {
  /** Names the store in texts, credentials masked, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  readonly lanes: readonly Lane[];
  /** The one lane beyond `lanes`, while there is one; it may not be ready yet. */
  readonly overflow: Lane | undefined;
  /** Begins to open the overflow lane, unless there is one. */
  openOverflow(): void;
  /** Gives the overflow lane up. */
  closeOverflow(): void;
  /** Whether the server is asked. Opened by who finds that it is away, here or in the lanes. */
  readonly breaker: Breaker;
}

/** What becomes of requests that find no free lane (behaviour: pool-on-empty). All wait for
 * `waitMs` first. */
export interface EmptyPoolRule {
  /** `create`: the overflow lane is opened; `error`: they fail; `wait`: they wait on. */
  readonly behavior: 'create' | 'error' | 'wait';
  readonly waitMs: number;
}
