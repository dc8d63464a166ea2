// The benchmark's handle on the load generator: one process for all loads, so that its code is compiled once and not
// during each load.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadMoment, LoadOptions, LoadResult } from './load/load-run.ts';
import type { LoadReport } from './load/main.ts';

const mainFile = fileURLToPath(new URL('load/main.ts', import.meta.url));
const graceMs = 20_000;

export function startGenerator() {
  const child = fork(mainFile, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Distinguishes NaN from 0.
    serialization: 'advanced',
  });
  const ended = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      reject(new Error(`the load generator ended early: ${code ?? signal}`));
    });
  });
  // The process exits between two loads when the benchmark is over.
  ended.catch(() => {});
  return {
    /** One load after another. Calls `onMoment` at the beginning, the middle and the end of the measured time. Rejects
     * when the load cannot be generated, or does not end in time. */
    async run(options: LoadOptions, onMoment: (moment: LoadMoment, answered: number) => void) {
      const timeout = AbortSignal.timeout(options.warmUpMs + options.measuredMs + graceMs);
      const kill = () => child.kill('SIGKILL');
      timeout.addEventListener('abort', kill);
      let listener: ((message: LoadReport) => void) | undefined;
      const outcome = new Promise<LoadResult>((resolve, reject) => {
        listener = (message) => {
          if (message.kind === 'moment') onMoment(message.moment, message.answered);
          else if (message.kind === 'result') resolve(message.result);
          else reject(new Error(`the load generator: ${message.reason}`));
        };
        child.on('message', listener);
        child.send(options);
      });
      try {
        return await Promise.race([outcome, ended]);
      } finally {
        timeout.removeEventListener('abort', kill);
        if (listener !== undefined) child.off('message', listener);
      }
    },
    stop() {
      if (child.connected) child.disconnect();
    },
  };
}
