// The program of a process that decides. The primary starts it (fork-process.ts), nobody else does.
import '../fast-strings.ts';
import { stopSignals } from '../../shared/stop-signals.ts';
import { createDecisionProcess } from './decision-process.ts';
import type { FromProcess, ToProcess } from './message.ts';

// The primary says when to stop; a terminal sends its signals to all processes. When the primary is
// gone the runtime ends this process (cluster).
for (const name of stopSignals) process.on(name, () => {});

const decisionProcess = createDecisionProcess({
  send: (message: FromProcess) =>
    new Promise<void>((resolve) => {
      // An error means that the primary is gone.
      process.send?.(message, undefined, undefined, () => resolve());
    }),
  end: (exitCode) => process.exit(exitCode),
});
process.on('uncaughtException', (error) => decisionProcess.fail(error));
process.on('message', (message) => decisionProcess.take(message as ToProcess));
