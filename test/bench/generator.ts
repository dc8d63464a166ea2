// The load generator seen from the benchmark: started, waited for, ended.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadMoment, LoadOptions, LoadResult } from './load/load-run.ts';
import type { LoadReport } from './load/main.ts';

const mainFile = fileURLToPath(new URL('load/main.ts', import.meta.url));
const graceMs = 20_000;

/** `onMoment` is called at the beginning, the middle and the end of the measured time. */
export function runGenerator(
  options: LoadOptions,
  onMoment: (moment: LoadMoment, answered: number) => void,
): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const child = fork(mainFile, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Keeps what is not a number apart from 0.
      serialization: 'advanced',
    });
    const timeout = AbortSignal.timeout(options.warmUpMs + options.measuredMs + graceMs);
    timeout.addEventListener('abort', () => child.kill('SIGKILL'));
    child.on('message', (message: LoadReport) => {
      switch (message.kind) {
        case 'moment':
          onMoment(message.moment, message.answered);
          return;
        case 'result':
          resolve(message.result);
          break;
        case 'failure':
          reject(new Error(`the load generator: ${message.reason}`));
          break;
      }
      child.disconnect();
    });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      reject(new Error(`the load generator ended early: ${code ?? signal}`));
    });
    child.send(options);
  });
}
