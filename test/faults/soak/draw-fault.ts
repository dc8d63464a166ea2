// Derives faults from a seed, and how long each may last.
import type { Random } from '../../support/random.ts';
import type { Fault } from '../../support/tcp-proxy.ts';

/** The longest duration of a fault. */
export const longestFaultMs = 3_000;
/** How long recovery from a repaired fault may take; it takes a second or less by itself, the rest is for a busy
 * machine. */
export const recoveryMs = 30_000;

export function drawFault(random: Random): Fault {
  const kind = random.pick(['latency', 'stall', 'drip', 'reset', 'half-close', 'cut'] as const);
  if (kind === 'latency') return { kind, ms: 10 + random.below(300) };
  if (kind === 'drip') return { kind, bytes: 1 + random.below(64), everyMs: 5 };
  return { kind };
}

/** Short ones are as likely as long ones. */
export function drawMs(random: Random, mostMs: number): number {
  return Math.round(mostMs / 2 ** random.below(5));
}
