// The application: what surrounds all of it, and the proxies in front of it.
import {
  type App,
  compress,
  createApp,
  type ReportError,
  type RequestLogEntry,
  requestLog,
} from '../index.ts';

export interface BoardOptions {
  readonly trustedProxies: readonly string[];
  readonly log?: (entry: RequestLogEntry) => void;
  readonly reportError?: ReportError;
}

export function createBoardApp({ trustedProxies, log, reportError }: BoardOptions): Promise<App> {
  return createApp({
    controllerPrefix: `${import.meta.dirname}/controllers`,
    info: { title: 'Board', version: '1.0.0' },
    requireGuards: true,
    trustedProxies,
    around: [requestLog(log), compress()],
    ...(reportError && { reportError }),
  });
}
