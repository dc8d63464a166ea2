// The memory of this process. Node reads it from a file, which a process at its limit of open files cannot open.

/** Undefined if the system does not report it. */
export function readMemory(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage();
  } catch {
    return undefined;
  }
}
