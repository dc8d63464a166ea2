// One line for each request.
import type { Around } from '../request/request.ts';

/** Excludes the query and headers, which may contain secrets. */
export interface RequestLogEntry {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Time until the answer began. */
  readonly durationMs: number;
  readonly remoteAddress: string | undefined;
}

/** `around: requestLog()`: logs every request, even if no method answers it. Default: a JSON line on standard output.
 * If a stream fails later, the error report with the same request id has the error. */
export function requestLog(write: (entry: RequestLogEntry) => void = writeLine): Around {
  return async (next, { id, method, path, remoteAddress }) => {
    const startMs = performance.now();
    const answer = await next();
    const durationMs = Math.round((performance.now() - startMs) * 1_000) / 1_000;
    write({ requestId: id, method, path, status: answer.status, durationMs, remoteAddress });
    return answer;
  };
}

function writeLine(entry: RequestLogEntry): void {
  process.stdout.write(`${JSON.stringify({ level: 'info', ...entry })}\n`);
}
