// The report of a request that failed because of us: one JSON line, without body, query and credentials.
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
