// Calls of an engine that ends each of them by itself: after a time limit, or when the control plane stops.
import { AppError, errorText } from '../../../../shared/errors.ts';
import { withoutNodeAdvice } from '../../../../shared/tls.ts';
import { unlessAborted } from '../../../../shared/unless-aborted.ts';

/** A step of a rollout waits for it. */
export const engineTimeoutMs = 5_000;

export class BoundedCalls {
  readonly #closed = new AbortController();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** `call` has to end once its signal is aborted. Rejects with an AppError `store`. */
  async run<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    const signal = AbortSignal.any([this.#closed.signal, timeout]);
    try {
      return await unlessAborted(call(signal), signal);
    } catch (error) {
      const reason = timeout.aborted ? `no answer within ${this.#timeoutMs} ms` : toReason(error);
      throw new AppError('store', reason, { cause: error });
    }
  }

  /** Aborts the calls under way, and those to come. */
  close(): void {
    this.#closed.abort(new Error('the control plane stops'));
  }
}

function toReason(error: unknown): string {
  // Several addresses of one name fail together, and their error has no text of its own.
  if (error instanceof AggregateError) return error.errors.map(errorText).join('; ');
  return withoutNodeAdvice(errorText(error));
}
