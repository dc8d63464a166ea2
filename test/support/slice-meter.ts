// Loaded into a program before it starts (--import): measures how long its main thread works without a pause, by the
// thread's own processor time, which a busy machine lengthens least: that of user mode, since a virtual machine that has to
// wait for its host counts this as work of its system. SIGUSR2 prints the longest so far, and begins again.
import { isMainThread } from 'node:worker_threads';

const tickMs = 2;

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
    process.stderr.write(`longest slice: ${longestMs.toFixed(1)} ms\n`);
    longestMs = 0;
  });
}
