// The results of a soak so far: requests and answers, faults, how often each invariant was checked, and violations.

export type Findings = ReturnType<typeof createFindings>;

/** More of the same adds no information. */
const maxViolations = 50;

export function createFindings() {
  const faults = new Map<string, number>();
  const checks = new Map<string, number>();
  const violations: string[] = [];
  return {
    answers: { ok: 0, over: 0, failed: 0 },
    /** By target and kind. */
    faults,
    checks,
    violations,
    /** From a fault until decisions are counted again. */
    longestRecoveryMs: 0,
    goodPushes: 0,
    badPushes: 0,
    noteFault: (name: string) => void faults.set(name, (faults.get(name) ?? 0) + 1),
    /** Counts the check of an invariant; `detail` returns the observation when it is violated. */
    check(invariant: string, holds: boolean, detail: string) {
      checks.set(invariant, (checks.get(invariant) ?? 0) + 1);
      if (!holds && violations.length < maxViolations) violations.push(`${invariant}: ${detail}`);
    },
  };
}
