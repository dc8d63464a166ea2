// The worker's log: on standard error, as the settings say.
import { createLineOutput } from '../shared/line-output.ts';
import { createLog, type Log } from '../shared/log.ts';
import type { WorkerSettings } from './settings.ts';

export function createWorkerLog({ level, format }: WorkerSettings['log']): Log {
  return createLog({
    level,
    format: format === 'text' && process.stderr.isTTY ? 'terminal' : format,
    write: createLineOutput(process.stderr).write,
  });
}
