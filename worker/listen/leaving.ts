// Before the ports close: callers are still served, but asked to use other servers, until they have stopped sending
// requests (behaviour: callers-leave-first).
import type { Clock } from '../../shared/clock.ts';

/** A port whose callers can be asked to leave. */
export interface LeavingPort {
  /**
   * Continues to serve, but each answer asks callers to send further requests elsewhere. False if no caller is
   * expected.
   */
  turnAway(): boolean;
  /** The number of requests for decisions since the start. */
  readonly asked: number;
}

/** A caller with longer pauses may not have been asked yet. */
const quietMs = 250;

/** Resolves when no port received a request for a quarter of a second, after `limitMs` at the latest. */
export async function letCallersLeave(
  ports: readonly LeavingPort[],
  limitMs: number,
  clock: Clock,
): Promise<void> {
  const areExpected = ports.map((port) => port.turnAway()).includes(true);
  if (!areExpected) return;
  const countAsked = () => ports.reduce((sum, { asked }) => sum + asked, 0);
  const endMs = clock.monotonicMs() + limitMs;
  let seen: number;
  do {
    seen = countAsked();
    await new Promise<void>((resolve) => clock.after(quietMs, resolve));
    // Requests that arrived while the process stalled are read after the timers.
    await new Promise(setImmediate);
  } while (countAsked() > seen && clock.monotonicMs() < endMs);
}
