// One problem of a rules document, for every output (log, CLI, API).

import type { ProblemRule, Severity } from './problem-rule.ts';

export interface Problem {
  readonly severity: Severity;
  /** The kind of the problem. */
  readonly rule: ProblemRule;
  /** The file's path or the resource's name, as its author knows it. */
  readonly file: string;
  /** 1-based; undefined when the source has no lines (a resource that came over xDS). */
  readonly line: number | undefined;
  /** In UTF-16 code units, 1-based. */
  readonly column: number | undefined;
  /** A path in the document, such as `descriptors[0].rate_limit.unit`; '' is the whole document. */
  readonly path: string;
  /** One sentence without a final full stop, naming the offending value. */
  readonly message: string;
  /** How to repair it, where that is not obvious. */
  readonly hint: string | undefined;
  /** The text of `line`, for the caret; undefined without one. */
  readonly sourceLine: string | undefined;
}

export function isError({ severity }: Pick<Problem, 'severity'>): boolean {
  return severity === 'error';
}

export function isNote({ severity }: Pick<Problem, 'severity'>): boolean {
  return severity === 'note';
}

export function isWarning({ severity }: Pick<Problem, 'severity'>): boolean {
  return severity === 'warning';
}

/** A problem of a whole file or other source. */
export function problemOf(
  severity: Severity,
  rule: ProblemRule,
  file: string,
  message: string,
  hint?: string,
): Problem {
  return {
    severity,
    rule,
    file,
    line: undefined,
    column: undefined,
    path: '',
    message,
    hint,
    sourceLine: undefined,
  };
}
