// Checks again, while calls are open, whether they may be: a call outlives its right by no more than some seconds. What a
// worker has been given stays with it; it gets nothing else, and its figures stop counting.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';

/** Why a call may not be open any more, for the client and the log; undefined while it may. */
export type ReasonAgainst = () => string | undefined;

export interface OpenRightsDeps<Call> {
  readonly clock: Clock;
  readonly onLost: (call: Call, reason: string) => void;
}

/** With the two seconds after which a file of tokens is read again. */
export const rightsMs = 10_000;
const callsPerTurn = 100;

export class OpenRights<Call> {
  readonly #deps: OpenRightsDeps<Call>;
  readonly #open = new Map<Call, ReasonAgainst>();
  /** Undefined while no call is open: there is nothing to check then. */
  #stopChecks: (() => void) | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(deps: OpenRightsDeps<Call>) {
    this.#deps = deps;
  }

  add(call: Call, reasonAgainst: ReasonAgainst): void {
    this.#open.set(call, reasonAgainst);
    this.#stopChecks ??= repeatAfter(this.#deps.clock, rightsMs, () =>
      this.#check(this.#open.entries()),
    );
  }

  delete(call: Call): void {
    this.#open.delete(call);
    if (this.#open.size === 0) this.stop();
  }

  stop(): void {
    this.#stopChecks?.();
    this.#stopChecks = undefined;
    clearImmediate(this.#turn);
  }

  /** Some at a time: there may be ten thousand. */
  #check(calls: Iterator<[Call, ReasonAgainst]>): void {
    clearImmediate(this.#turn);
    for (let left = callsPerTurn; left > 0; left--) {
      const { done, value } = calls.next();
      if (done) return;
      const reason = value[1]();
      if (reason === undefined) continue;
      this.delete(value[0]);
      this.#deps.onLost(value[0], reason);
    }
    this.#turn = setImmediate(() => this.#check(calls));
  }
}
