// Ends a command quietly when its output is closed.

/**
 * The reader may close the output early, as `head` does: the command then ends silently, and that is no
 * failure. A closed standard error is ignored.
 */
export function endWhenOutputIsClosed(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
