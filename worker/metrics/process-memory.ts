// The memory of this process. Node reads it from a file, and a process with too many open files can open none.

/** Undefined where the system does not report it. */
export function readMemory(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage();
  } catch {
    return undefined;
  }
}
