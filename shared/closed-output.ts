// Ends a command when its output cannot be written: quietly when it is closed.
import { errorText } from './errors.ts';
import { exitCodes } from './exit-codes.ts';

/**
 * The reader may close the output early, as `head` does: the command then ends silently, and that is no
 * failure. Nothing can be reported of a standard error that cannot be written: it is ignored.
 */
export function endWhenOutputIsClosed(): void {
  process.stdout.on('error', end);
  process.stderr.on('error', () => {});
}

/** Keeps a command that serves running when its output is closed: it writes to its log. */
export function outliveOutput(): void {
  process.stdout.on('error', () => {}).off('error', end);
}

function end(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`The output cannot be written: ${errorText(error)}\n`);
  process.exit(exitCodes.failed);
}
