// What the texts in all engines have in common: a call ends after a time limit or when the control plane stops, and a
// text that is too long is read as an empty one.
import { AppError } from '../../../../shared/errors.ts';
import { unlessAborted } from '../../../../shared/unless-aborted.ts';
import { toCallProblem } from '../../json-call.ts';
import {
  maxSharedTextBytes,
  type SharedText,
  type SwapResult,
  type VersionedText,
} from '../../store/shared-text.ts';

/** A step of a rollout waits for each call. */
export const engineTimeoutMs = 5_000;

/** The text as the engine stores it. */
export interface Found {
  readonly version: string;
  readonly bytes: Buffer;
}

/** `Session`: what one call works with; it ends with the call. */
export abstract class EngineText<Session> implements SharedText {
  readonly description: string;
  protected readonly timeoutMs: number;
  readonly #aside: string;
  readonly #closed = new AbortController();

  constructor(description: string, aside: string, timeoutMs: number) {
    this.description = `${description} (--record)`;
    this.#aside = aside;
    this.timeoutMs = timeoutMs;
  }

  protected abstract open<Result>(
    signal: AbortSignal,
    use: (session: Session) => Promise<Result>,
  ): Promise<Result>;
  protected abstract find(session: Session): Promise<Found | undefined>;
  protected abstract replace(
    session: Session,
    before: string | undefined,
    text: string,
  ): Promise<SwapResult>;
  /** Moves the text aside unless the newest one has another version. */
  protected abstract move(session: Session, version: string): Promise<void>;

  read(): Promise<VersionedText | undefined> {
    return this.#call(async (session) => {
      const found = await this.find(session);
      if (found === undefined) return undefined;
      const { version, bytes } = found;
      return { version, text: bytes.length > maxSharedTextBytes ? '' : bytes.toString() };
    });
  }

  swap(before: string | undefined, text: string): Promise<SwapResult> {
    return this.#call((session) => this.replace(session, before, text));
  }

  async setAside(version: string): Promise<string> {
    await this.#call((session) => this.move(session, version));
    return this.#aside;
  }

  /** Aborts all calls that are under way or follow. */
  close(): void {
    this.#closed.abort(new Error('the control plane stops'));
  }

  async #call<Result>(use: (session: Session) => Promise<Result>): Promise<Result> {
    const timeout = AbortSignal.timeout(this.timeoutMs);
    const signal = AbortSignal.any([this.#closed.signal, timeout]);
    try {
      return await unlessAborted(this.open(signal, use), signal);
    } catch (error) {
      const reason = timeout.aborted
        ? `no answer within ${this.timeoutMs} ms`
        : toCallProblem(error);
      throw new AppError('store', reason, { cause: error });
    }
  }
}
