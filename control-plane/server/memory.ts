// The memory that a control plane may use, and what it does where that is little.
import { totalmem } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/** Below it the change of 30,000 limits, which takes 460 MB where there is room, would end the process. */
const littleMb = 400;

/** Of the container, or of the machine. */
export function memoryMb(): number {
  const bytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  return bytes / 1024 / 1024;
}

/** Where there is little memory V8 collects garbage often, which doubles the processor time of a change. The flags of the
 * start would let the heap grow to two and a half times its size first. */
export function saveLittleMemory(): void {
  if (memoryMb() >= littleMb) return;
  setFlagsFromString('--memory-saver-mode');
  setFlagsFromString('--heap-growing-percent=0');
}
