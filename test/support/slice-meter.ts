// Loaded into a program before it starts (--import): measures how long its main thread works without a pause, by the
// thread's own processor time, which a busy machine lengthens least: that of user mode, since a virtual machine that has to
// wait for its host counts this as work of its system. SIGUSR2 prints the longest so far, and how long a piece of work takes
// that is always the same (the median of five), and begins again.
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
