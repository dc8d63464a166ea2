// All kinds of failure other than bad input, which is returned as `Problem` values instead
// (shared/rules/problem/problem.ts, shared/settings).

/** Each code with its meaning and its remedy. `ErrorFacts` has what callers see. */
export type ErrorCode =
  | 'bad_request'
  | 'not_ready'
  | 'store'
  | 'overloaded'
  | 'cannot_start'
  | 'internal';

export interface ErrorFacts {
  readonly meaning: string;
  /**
   * The status that a caller of the worker receives; undefined if callers never see this error. Every failed decision
   * has the same one, as in the reference.
   */
  readonly decision: { readonly grpc: 'UNKNOWN'; readonly http: 400 } | undefined;
  /** HTTP status of the admin API; undefined if it cannot occur. */
  readonly adminStatus: 400 | 500 | 503 | undefined;
  readonly whatToDo: string;
}

const failedDecision = { grpc: 'UNKNOWN', http: 400 } as const;

export const errorFacts: Readonly<Record<ErrorCode, ErrorFacts>> = {
  bad_request: {
    meaning:
      "The caller's message cannot be decided: empty domain, no descriptors, an unknown unit",
    decision: failedDecision,
    adminStatus: 400,
    whatToDo: 'The message names what is wrong: correct the caller',
  },
  not_ready: {
    meaning: 'No rules have ever been loaded',
    decision: failedDecision,
    adminStatus: undefined,
    whatToDo: 'See `/status` on the debug port: it lists what is awaited and what was refused',
  },
  store: {
    meaning: 'The store of counters or of configuration refused, failed, or did not answer in time',
    decision: failedDecision,
    adminStatus: 503,
    whatToDo: 'The message has its address and its reply: check the store and the network to it',
  },
  overloaded: {
    meaning:
      'A limit of this process was reached: too many requests wait for the store, or there are too many counters',
    decision: failedDecision,
    adminStatus: 500,
    whatToDo: 'A slow or unreachable store is the usual cause; otherwise add workers',
  },
  cannot_start: {
    meaning: 'A setting, a file or an address makes serving impossible',
    decision: undefined,
    adminStatus: undefined,
    whatToDo: 'The process has ended with exit code 1: the log names the setting',
  },
  internal: {
    meaning: 'A defect of this program',
    decision: failedDecision,
    adminStatus: 500,
    whatToDo: 'Report it, with the lines of the log',
  },
};

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
