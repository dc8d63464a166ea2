// A log that stores its lines for tests.
import type { Log, LogDetail } from '../../shared/log.ts';

export interface RecordedLog extends Log {
  /** `<level> <message>`, in order. */
  readonly lines: string[];
  /** The fields of the lines that have some, in order. */
  readonly fields: LogDetail['fields'][];
}

export function createRecordedLog(): RecordedLog {
  const lines: string[] = [];
  const fields: RecordedLog['fields'] = [];
  const write = (level: string) => (message: string, detail?: LogDetail) => {
    if (detail) fields.push(detail.fields);
    lines.push(`${level} ${message}`);
  };
  return {
    lines,
    fields,
    isDebug: true,
    debug: write('debug'),
    info: write('info'),
    notice: write('notice'),
    warning: write('warning'),
    error: write('error'),
  };
}
