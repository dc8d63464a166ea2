// Before the ports close: callers are still served, and asked to use other servers, until they have stopped asking
// (behaviour: callers-leave-first).
import type { Clock } from '../../shared/clock.ts';

/** A port whose callers can be asked to leave. */
export interface LeavingPort {
  /** Keeps serving, but each answer asks callers to send further requests elsewhere. False: no caller is
   * expected to ask. */
  turnAway(): boolean;
  /** Requests for decisions since the start. */
  readonly asked: number;
}

/** A caller with longer pauses may have missed it. */
const quietMs = 250;

/** Resolves when no port was asked for a quarter of a second, but no later than after `limitMs`. */
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
    // Requests that came while the process stalled are read after the timers.
    await new Promise(setImmediate);
  } while (countAsked() > seen && clock.monotonicMs() < endMs);
}
