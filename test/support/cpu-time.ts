// What this process has worked, which a busy machine does not lengthen as it does the time that passes.

/** Milliseconds of processor time so far. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
