// Preloaded into a program (--import): measures how long its main thread works without a pause, in the thread's own
// user-mode processor time, which a busy machine lengthens least (a virtual machine that waits for its host counts this
// as system time). SIGUSR2 prints the longest time so far, and the time of a constant piece of work (the median of
// five), and restarts the measurement.
import { isMainThread } from 'node:worker_threads';

const tickMs = 2;
const same = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ at, list: [{ at }] })));

function measureSame(): number {
  const times = Array.from({ length: 5 }, () => {
    const before = process.threadCpuUsage();
    JSON.parse(same);
    return process.threadCpuUsage(before).user / 1000;
  });
  return times.sort((a, b) => a - b)[2] ?? 0;
}

if (isMainThread) {
  let last = process.threadCpuUsage();
  let longestMs = 0;
  const tick = () => {
    const now = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (now.user - last.user) / 1000);
    last = now;
  };
  setInterval(tick, tickMs).unref();
  process.on('SIGUSR2', () => {
    tick();
    process.stderr.write(
      `longest slice: ${longestMs.toFixed(1)} ms, the same work: ${measureSame().toFixed(1)} ms\n`,
    );
    longestMs = 0;
    last = process.threadCpuUsage();
  });
}
