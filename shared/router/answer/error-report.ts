// The report of a request that failed because of us: one JSON line, without body, query and credentials.
import type { RoutedRequest } from '../request/request.ts';

export interface ErrorReport {
  readonly request: Pick<RoutedRequest, 'id' | 'method' | 'path'>;
  readonly status: number;
  readonly error: unknown;
}

export type ReportError = (report: ErrorReport) => void;

/** Writes to standard error. JSON escapes control characters, and the path is percent-encoded. */
export function writeErrorReport({ request, status, error }: ErrorReport): void {
  const { id, method, path } = request;
  const line = { level: 'error', requestId: id, method, path, status, error: toErrorText(error) };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

const maxCauses = 5;

/** Includes the stacks of the causes: that of an HttpError does not show the underlying failure. */
export function toErrorText(error: unknown): string {
  const texts: string[] = [];
  for (let next = error; next !== undefined && texts.length <= maxCauses; ) {
    texts.push(next instanceof Error ? (next.stack ?? next.message) : String(next));
    next = next instanceof Error ? next.cause : undefined;
  }
  return texts.join('\ncaused by: ');
}
