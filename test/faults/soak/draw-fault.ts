// Faults as a seed has them, and how long anything about them may take.
import type { Random } from '../../support/random.ts';
import type { Fault } from '../../support/tcp-proxy.ts';

/** How long a fault may last at most. */
export const longestFaultMs = 3_000;
/** Until all is well again after a repair; a second or less by itself, the rest is for a busy machine. */
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
