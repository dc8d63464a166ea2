// A program's log, on standard error. On a terminal the format `text` becomes `terminal`.
import { toCountText } from './count-text.ts';
import { createLineOutput } from './line-output.ts';
import { createLog, type Log, type LogFormat, type LogLevel } from './log.ts';

export interface ProgramLogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

/** Logs what is wrong with the settings. */
export const logBeforeSettings: ProgramLogOptions = { level: 'warning', format: 'text' };

export function createProgramLog({ level, format }: ProgramLogOptions): Log {
  const output = createLineOutput(process.stderr, (droppedCount, reason) =>
    log.warning(
      `${toCountText(droppedCount, 'line')} of this log could not be written, and ${droppedCount === 1 ? 'is' : 'are'} lost: ${reason}`,
    ),
  );
  const log = createLog({
    level,
    format: format === 'text' && process.stderr.isTTY ? 'terminal' : format,
    write: output.write,
  });
  return log;
}
