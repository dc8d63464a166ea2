// Finds out whether a silent peer is still there (gRPC's keepalive).
import { keepAliveMs, keepAliveTimeoutMs } from './limits.ts';

export class KeepAlive {
  #heard = true;
  #silentSinceMs: number;
  #askedMs: number | undefined;

  constructor(nowMs: number) {
    this.#silentSinceMs = nowMs;
  }

  /** Something came; as exact in time as `check` is often. */
  heard(): void {
    this.#heard = true;
  }

  /** `ask`: a PING is to be sent; `gone`: the one that was sent has had no answer. */
  check(nowMs: number): 'fine' | 'ask' | 'gone' {
    if (this.#heard) {
      this.#heard = false;
      this.#silentSinceMs = nowMs;
      this.#askedMs = undefined;
      return 'fine';
    }
    if (this.#askedMs !== undefined) {
      return nowMs - this.#askedMs >= keepAliveTimeoutMs ? 'gone' : 'fine';
    }
    if (nowMs - this.#silentSinceMs < keepAliveMs) return 'fine';
    this.#askedMs = nowMs;
    return 'ask';
  }
}
