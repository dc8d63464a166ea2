// Faults as a seed has them.
import type { Random } from '../../support/random.ts';
import type { Fault } from '../../support/tcp-proxy.ts';

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
