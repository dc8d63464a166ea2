// One line for each request.
import type { Around } from '../request/request.ts';

/** Without query and headers, which may hold secrets. */
export interface RequestLogEntry {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Until the answer began. */
  readonly durationMs: number;
  readonly remoteAddress: string | undefined;
}

/** `around: requestLog()`: every request, also one that no method answers. Default: a JSON line on standard output. A
 * stream that fails later is in the error report of the same request id. */
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
