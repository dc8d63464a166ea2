// The messages in a worker's log, by level, in readable form.
import type { WorkerProcess } from './worker-process.ts';

interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

const pair = /(\w+)=("(?:[^"\\]|\\.)*"|\S*)/g;

/** The lines of one level so far, in order. */
export function logLines(worker: WorkerProcess, level: 'error' | 'warning' | 'info'): LogLine[] {
  return worker
    .output()
    .split('\n')
    .filter((line) => line.startsWith('time="'))
    .map((line) => {
      const pairs = [...line.matchAll(pair)].map(([, name, value = '']) => [
        name,
        value.startsWith('"') ? JSON.parse(value) : value,
      ]);
      const { time: _, level, msg: message, ...fields } = Object.fromEntries(pairs);
      return { level, message, fields };
    })
    .filter((line) => line.level === level);
}

/** The messages of one level so far, in order. */
export function messages(worker: WorkerProcess, level: 'error' | 'warning' | 'info'): string[] {
  return logLines(worker, level).map(({ message }) => message);
}
