// Shows how far a long installation is: one line that is rewritten on a terminal, and a line now and
// then where the output is kept, as in a log of CI. Plain JavaScript for Node 20 and later.

/** Silence of more than this looks like a program that hangs; more lines make a log too long to read. */
const secondsOfLog = 10;

/** `text(seconds)` is asked every second. The returned function ends it, and removes the line of a terminal. */
export function startProgress(text, stream = process.stderr, secondMs = 1000) {
  const startedMs = Date.now();
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += 1;
    const line = `ratelane: ${text(Math.round((Date.now() - startedMs) / 1000))}`;
    if (stream.isTTY) stream.write(`\r\x1b[K${line.slice(0, (stream.columns || 80) - 1)}`);
    else if (seconds % secondsOfLog === 0) stream.write(`${line}\n`);
  }, secondMs);
  return () => {
    clearInterval(timer);
    if (stream.isTTY && seconds > 0) stream.write('\r\x1b[K');
  };
}
