// The log of a process that decides: its lines name the process, and lines that every process would write at its start
// are written once.
import type { Log, LogDetail } from '../../shared/log.ts';

export interface ProcessLog extends Log {
  /** Call it when the process serves: from now on its warnings are its own. */
  noteServing(): void;
}

export interface ProcessLogOptions {
  readonly number: number;
  /** Whether this process, until it serves, logs what a worker with a single process would. */
  readonly logsForAll: boolean;
}

export function createProcessLog(log: Log, { number, logsForAll }: ProcessLogOptions): ProcessLog {
  let isStarting = true;
  const withNumber = (message: string) => `process ${number}: ${message}`;
  const toShown = (message: string) => (isStarting && logsForAll ? message : withNumber(message));
  const withShown = (detail: LogDetail | undefined) =>
    detail && { ...detail, shown: toShown(detail.shown) };
  return {
    isDebug: log.isDebug,
    debug: (message) => log.debug(withNumber(message)),
    info: (message) => log.info(toShown(message)),
    notice(message) {
      if (isStarting && !logsForAll) log.info(toShown(message));
      else log.notice(toShown(message));
    },
    warning(message, detail) {
      if (isStarting && !logsForAll) log.info(toShown(message));
      else log.warning(toShown(message), withShown(detail));
    },
    error: (message, detail) => log.error(toShown(message), withShown(detail)),
    noteServing() {
      isStarting = false;
    },
  };
}
