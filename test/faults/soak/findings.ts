// What a soak has seen so far: what was asked and answered, what was broken, how often each invariant was
// checked, and what did not hold.

export type Findings = ReturnType<typeof createFindings>;

/** More of the same says nothing new. */
const maxViolations = 50;

export function createFindings() {
  const faults = new Map<string, number>();
  const checks = new Map<string, number>();
  const violations: string[] = [];
  return {
    answers: { ok: 0, over: 0, failed: 0 },
    /** By what it is done to and how. */
    faults,
    checks,
    violations,
    /** After a fault, until decisions are counted again. */
    longestRecoveryMs: 0,
    goodPushes: 0,
    badPushes: 0,
    noteFault: (name: string) => void faults.set(name, (faults.get(name) ?? 0) + 1),
    /** Counts the check of an invariant; `detail` says what was found when it does not hold. */
    check(invariant: string, holds: boolean, detail: string) {
      checks.set(invariant, (checks.get(invariant) ?? 0) + 1);
      if (!holds && violations.length < maxViolations) violations.push(`${invariant}: ${detail}`);
    },
  };
}
