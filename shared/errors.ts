// All kinds of failure other than bad input, which is returned as `Problem` values instead
// (shared/rules/problem/problem.ts, shared/settings).

/**
 * Each kind of failure, with the HTTP status of the admin API: undefined if it cannot occur there. The admin API sends the
 * message with a status other than 500. Callers of the worker receive UNKNOWN or 400 for all kinds, as from the reference.
 */
export const errorFacts = {
  bad_request: {
    meaning:
      "The caller's message cannot be decided: empty domain, no descriptors, an unknown unit",
    adminStatus: 400,
    whatToDo: 'The message names what is wrong: correct the caller',
  },
  not_ready: {
    meaning: 'No rules have ever been loaded',
    adminStatus: undefined,
    whatToDo: 'See `/status` on the debug port: it lists what is awaited, and refused rules',
  },
  store: {
    meaning: 'The store of counters or of configuration refused, failed, or did not answer in time',
    adminStatus: 503,
    whatToDo: 'The message has its address and its reply: check the store and the network to it',
  },
  overloaded: {
    meaning:
      'A limit of this process was reached: too many requests wait for the store, or there are too many counters',
    adminStatus: 500,
    whatToDo: 'A slow or unreachable store is the usual cause; otherwise add workers',
  },
  cannot_start: {
    meaning: 'A setting, a file or an address makes serving impossible',
    adminStatus: undefined,
    whatToDo: 'The process has ended with exit code 1: the log names the setting',
  },
  internal: {
    meaning: 'A defect of this program',
    adminStatus: 500,
    whatToDo: 'Report it, with the lines of the log',
  },
} as const;

export type ErrorCode = keyof typeof errorFacts;

export class AppError extends Error {
  readonly code: ErrorCode;

  /** `message` is for users: it names the thing that failed; `cause` is for logs only. */
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'AppError';
    this.code = code;
  }
}

/** Whether the process, or the whole system, cannot open any more files and connections. */
export function isOutOfFiles(error: unknown): boolean {
  return error instanceof Error && /\bE[MN]FILE\b/.test(error.message);
}

export const outOfFilesRemedy = 'raise the limit of open files (ulimit -n, LimitNOFILE)';

/** The text of anything thrown, without a stack. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const isAdvised = !isOutOfFiles(error) || text.includes(outOfFilesRemedy);
  return isAdvised ? text : `${text}: ${outOfFilesRemedy}`;
}
