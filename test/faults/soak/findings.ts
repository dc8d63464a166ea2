// What a soak has seen so far: what was asked and answered, what was broken, how often each invariant was
// checked, and what did not hold.

export interface Findings {
  readonly answers: { ok: number; over: number; failed: number };
  /** By what it is done to and how. */
  readonly faults: ReadonlyMap<string, number>;
  readonly checks: ReadonlyMap<string, number>;
  readonly violations: readonly string[];
  /** After a fault, until decisions are counted again. */
  longestRecoveryMs: number;
  goodPushes: number;
  badPushes: number;
  noteFault(name: string): void;
  /** Counts the check of an invariant; `detail` says what was found when it does not hold. */
  check(invariant: string, holds: boolean, detail: string): void;
}

/** More of the same says nothing new. */
const maxViolations = 50;

export function createFindings(): Findings {
  const faults = new Map<string, number>();
  const checks = new Map<string, number>();
  const violations: string[] = [];
  return {
    answers: { ok: 0, over: 0, failed: 0 },
    faults,
    checks,
    violations,
    longestRecoveryMs: 0,
    goodPushes: 0,
    badPushes: 0,
    noteFault: (name) => void faults.set(name, (faults.get(name) ?? 0) + 1),
    check(invariant, holds, detail) {
      checks.set(invariant, (checks.get(invariant) ?? 0) + 1);
      if (!holds && violations.length < maxViolations) violations.push(`${invariant}: ${detail}`);
    },
  };
}
