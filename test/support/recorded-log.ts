// A log that keeps its lines, for tests that look at them.
import type { Log } from '../../shared/log.ts';

export interface RecordedLog extends Log {
  /** `<level> <message>`, in order. */
  readonly lines: string[];
}

export function createRecordedLog(): RecordedLog {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => {
    lines.push(`${level} ${message}`);
  };
  return {
    lines,
    isDebug: true,
    debug: write('debug'),
    info: write('info'),
    notice: write('notice'),
    warning: write('warning'),
    error: write('error'),
  };
}
