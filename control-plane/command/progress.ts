// Says that a command waits, and for what, once that takes longer than a moment: silence of more than
// two seconds looks like a program that hangs. On standard error, so that answers stay as they are.
import type { CommandIo } from './command-frame.ts';

const firstMs = 2_000;
const laterMs = 5_000;

/** `what` is asked each time that something is said. Ends with what is returned. */
export function startProgress(
  { clock, writeError }: Pick<CommandIo, 'clock' | 'writeError'>,
  what: () => string,
): () => void {
  const startedMs = clock.monotonicMs();
  let cancel = clock.after(firstMs, say);
  function say(): void {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    writeError(`waiting: ${what()} (${seconds} s)\n`);
    cancel = clock.after(laterMs, say);
  }
  return () => cancel();
}
