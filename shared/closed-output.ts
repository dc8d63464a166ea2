// Handles an output that cannot be written: a command ends, silently when its output was closed.
import { errorText } from './errors.ts';
import { exitCodes } from './exit-codes.ts';

/**
 * The reader may close the output early, as `head` does: the command then ends silently, without a failure. An error of
 * standard error cannot be reported anywhere: it is ignored.
 */
export function endWhenOutputIsClosed(): void {
  process.stdout.on('error', end);
  process.stderr.on('error', () => {});
}

/** A command that serves keeps running when its output is closed: it writes to its log. */
export function outliveOutput(): void {
  process.stdout.on('error', () => {}).off('error', end);
}

function end(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`The output cannot be written: ${errorText(error)}\n`);
  process.exit(exitCodes.failed);
}
