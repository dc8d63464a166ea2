// Detects whether a silent peer is still alive (gRPC's keepalive).
import { keepAliveMs, keepAliveTimeoutMs } from './limits.ts';

export class KeepAlive {
  #hasReceived = true;
  #silentSinceMs: number;
  #askedMs: number | undefined;

  constructor(nowMs: number) {
    this.#silentSinceMs = nowMs;
  }

  /** Records input; as precise as the interval of `check`. */
  received(): void {
    this.#hasReceived = true;
  }

  /** `ask` means: send a PING; `gone`: the last PING had no answer. */
  check(nowMs: number): 'fine' | 'ask' | 'gone' {
    if (this.#hasReceived) {
      this.#hasReceived = false;
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
