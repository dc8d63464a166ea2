// Checks repeatedly whether open calls still have the right to be open: a call outlives its right by no more than some
// seconds. The worker keeps the rules that it has; it receives nothing more, and its figures no longer count.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';

/** Why a call no longer has the right to be open, for the client and the log; undefined while it has. */
export type ReasonAgainst = () => string | undefined;

export interface OpenRightsDeps<Call> {
  readonly clock: Clock;
  readonly onLost: (call: Call, reason: string) => void;
}

/** In addition to the two seconds after which a token file is read again. */
export const rightsMs = 10_000;
const callsPerTurn = 100;

export class OpenRights<Call> {
  readonly #deps: OpenRightsDeps<Call>;
  readonly #open = new Map<Call, ReasonAgainst>();
  /** Undefined while no call is open: then there is nothing to check. */
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

  /** A few at a time: there may be ten thousand. */
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
