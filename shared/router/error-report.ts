// What is said about a request that failed for a reason of ours: one JSON line, without its body,
// its query and its credentials.
import type { RoutedRequest } from './request.ts';

export interface ErrorReport {
  readonly request: Pick<RoutedRequest, 'id' | 'method' | 'path'>;
  readonly status: number;
  readonly error: unknown;
}

export type ReportError = (report: ErrorReport) => void;

/** To standard error. JSON escapes control characters, and the path is percent-encoded. */
export function writeErrorReport({ request, status, error }: ErrorReport): void {
  const { id, method, path } = request;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const line = { level: 'error', requestId: id, method, path, status, error: text };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
