// Collects the problems of one or more documents: without repeats, and bounded in number.

import { toCountText } from '../count-text.ts';
import type { Problem } from './problem.ts';

export interface ProblemList {
  /** A problem equal to an earlier one in place and text is dropped: an alias repeats its anchor. */
  add(problem: Problem): void;
  readonly hasErrors: boolean;
  /**
   * In the order of `add`. Of errors and of warnings the first hundred each are kept, and a last
   * problem says how many more there were.
   */
  toProblems(): Problem[];
}

const maxPerSeverity = 100;

/** `file` names the source in the line about what was left out. */
export function createProblemList(file: string): ProblemList {
  const kept: Problem[] = [];
  const seen = new Set<string>();
  const counts = { error: 0, warning: 0 };
  return {
    add(problem) {
      const { severity, line, column, message } = problem;
      if (counts[severity] < maxPerSeverity) {
        const place = line === undefined ? problem.path : `${line}:${column}`;
        const identity = `${problem.file}\0${place}\0${message}`;
        if (seen.has(identity)) return;
        seen.add(identity);
        kept.push(problem);
      }
      counts[severity]++;
    },
    get hasErrors() {
      return counts.error > 0;
    },
    toProblems() {
      const errors = Math.max(0, counts.error - maxPerSeverity);
      const warnings = Math.max(0, counts.warning - maxPerSeverity);
      if (errors + warnings === 0) return kept;
      const left = [countText(errors, 'error'), countText(warnings, 'warning')].filter(Boolean);
      return [
        ...kept,
        {
          severity: errors > 0 ? 'error' : 'warning',
          rule: 'other',
          file,
          line: undefined,
          column: undefined,
          path: '',
          message: `and ${left.join(' and ')}`,
          hint: 'repair these first, then look again',
          sourceLine: undefined,
        },
      ];
    },
  };
}

function countText(count: number, noun: string): string {
  return count === 0 ? '' : toCountText(count, `more ${noun}`);
}
