// What becomes of a command whose output nobody reads any more.

/**
 * Whoever reads the output may close it early, as `head` does: the command then ends without a word, and
 * that is no failure. A closed standard error only means that nobody wants to be told.
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
