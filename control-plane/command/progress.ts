// Reports why a command takes a while: more than two seconds of silence resembles a program that hangs. Written to
// standard error, so that the output stays clean.
import type { CommandIo } from './command-frame.ts';

const firstMs = 2_000;
const laterMs = 5_000;

/** `what` returns the text of each line. The returned function stops the lines. */
export function startProgress(
  { clock, writeError }: Pick<CommandIo, 'clock' | 'writeError'>,
  what: () => string,
): () => void {
  const startedMs = clock.monotonicMs();
  let cancel = clock.after(firstMs, print);
  function print(): void {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    writeError(`waiting: ${what()} (${seconds} s)\n`);
    cancel = clock.after(laterMs, print);
  }
  return () => cancel();
}
