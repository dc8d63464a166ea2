// Detects whether a silent peer is still alive (gRPC's keepalive).
import { keepAliveMs, keepAliveTimeoutMs } from './limits.ts';

export class KeepAlive {
  #heard = true;
  #silentSinceMs: number;
  #askedMs: number | undefined;

  constructor(nowMs: number) {
    this.#silentSinceMs = nowMs;
  }

  /** Records input; as precise as the interval of `check`. */
  heard(): void {
    this.#heard = true;
  }

  /** `ask` means: send a PING; `gone`: the last PING had no answer. */
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
