// The program of a process that decides. Only the primary starts it (fork-process.ts).
import '../fast-strings.ts';
import { stopSignals } from '../../shared/stop-signals.ts';
import { createDecisionProcess } from './decision-process.ts';
import type { FromProcess, ToProcess } from './message.ts';

// Signals are ignored: the primary sends the command to stop, and a terminal sends signals to all processes. When the
// primary has ended, the cluster module ends this process.
for (const name of stopSignals) process.on(name, () => {});

const send = (message: FromProcess) =>
  new Promise<void>((resolve) => {
    // An error means that the primary has ended.
    process.send?.(message, undefined, undefined, () => resolve());
  });
const decisionProcess = createDecisionProcess({
  send,
  end: (exitCode) => process.exit(exitCode),
});
process.on('uncaughtException', (error) => decisionProcess.fail(error));
process.on('message', (message) => decisionProcess.receive(message as ToProcess));
void send({ kind: 'loaded' });
