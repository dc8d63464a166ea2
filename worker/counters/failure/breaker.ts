// A circuit breaker for one server: while the server is unreachable, decisions fail at once and nothing is sent to it.
// Its connections detect when it becomes unreachable and when it recovers.
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';

/**
 * - `closed`: the server is asked.
 * - `open`: the server is unreachable. Nothing is sent but one attempt to connect at a time.
 * - `half-open`: the server had accepted requests without answering; now it has answered an attempt to
 *   connect. One batch is sent, and nothing else before its answer: a proxy may answer for a server that
 *   does not count.
 */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface Breaker {
  readonly state: BreakerState;
  /** The error for decisions; undefined when closed. */
  readonly refusal: AppError | undefined;
  /** The reason for being open, without the server's name. */
  readonly reason: string;
  /** A human-readable line; undefined when the breaker is closed. */
  describe(): string | undefined;
  /** Call it when the server is or remains unreachable; the last reason is shown. */
  open(reason: string): void;
  /** As `open`, after requests without an answer. */
  openOnTimeout(reason: string): void;
  /** Call it when the server answers again: `open` becomes `half-open` after a timeout, else `closed`. */
  halfOpen(): void;
  /** Call it when the server counts again: `half-open` becomes `closed`. */
  close(): void;
}

export interface BreakerDeps {
  /** The server's name in texts, credentials masked, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  readonly clock: Clock;
  /** Called after each change of the state. */
  readonly onChange: (state: BreakerState, before: BreakerState) => void;
}

export function createBreaker(deps: BreakerDeps): Breaker {
  return new CircuitBreaker(deps);
}

class CircuitBreaker implements Breaker {
  state: BreakerState = 'closed';
  refusal: AppError | undefined;
  reason = '';
  readonly #deps: BreakerDeps;
  #since = '';
  #needsTrial = false;

  constructor(deps: BreakerDeps) {
    this.#deps = deps;
  }

  describe(): string | undefined {
    const { refusal, state } = this;
    const trial = state === 'open' ? '' : ', half-open';
    return refusal && `${refusal.message} (away since ${this.#since}${trial})`;
  }

  open(reason: string): void {
    this.reason = reason;
    this.refusal = new AppError('store', `${this.#deps.name}: ${reason}`);
    if (this.state !== 'open') this.#change('open');
  }

  openOnTimeout(reason: string): void {
    this.#needsTrial = true;
    this.open(reason);
  }

  halfOpen(): void {
    if (this.state === 'open') this.#change(this.#needsTrial ? 'half-open' : 'closed');
  }

  close(): void {
    if (this.state === 'half-open') this.#change('closed');
  }

  #change(next: BreakerState): void {
    const { clock, onChange } = this.#deps;
    const before = this.state;
    this.state = next;
    if (next === 'closed') {
      this.refusal = undefined;
      this.#needsTrial = false;
    } else if (before === 'closed') this.#since = new Date(clock.wallMs()).toISOString();
    onChange(next, before);
  }
}
