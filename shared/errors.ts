// The closed list of ways in which an operation fails that is not the reader's bad input:
// bad input travels as `Problem` values instead (shared/rules/problem.ts, shared/settings).

/**
 * - `bad_request`: the caller's message cannot be decided (empty domain, no descriptors, ...).
 * - `not_ready`: no rules have ever been loaded.
 * - `store`: the store of counters or of configuration refused, failed, or did not answer in time.
 * - `overloaded`: a bound of this process was reached (queue, memory).
 * - `cannot_start`: a setting, file or address makes serving impossible; the process exits.
 * - `internal`: a defect of ours.
 */
export type ErrorCode =
  | 'bad_request'
  | 'not_ready'
  | 'store'
  | 'overloaded'
  | 'cannot_start'
  | 'internal';

export class AppError extends Error {
  readonly code: ErrorCode;

  /** `message` is read by people: it names the thing that failed; `cause` is for logs only. */
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'AppError';
    this.code = code;
  }
}

/** The text of anything thrown, without a stack. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
