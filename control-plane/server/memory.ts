// What a control plane does where it has little memory.
import { setFlagsFromString } from 'node:v8';
import { memoryMb } from './work-thread.ts';

/** Below it the change of 30,000 limits, which takes 460 MB where there is room, would end the process. */
const littleMb = 400;

/** Where there is little memory V8 collects garbage often, which doubles the processor time of a change. The flags of the
 * start would let the heap grow to two and a half times its size first. */
export function saveLittleMemory(): void {
  if (memoryMb() >= littleMb) return;
  setFlagsFromString('--memory-saver-mode');
  setFlagsFromString('--heap-growing-percent=0');
}
