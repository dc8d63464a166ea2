// The CPU time of this process, which a busy machine lengthens less than wall time.

/** Milliseconds of processor time so far. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
