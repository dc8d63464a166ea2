// Runs the cases of one test, each from its own seed, and logs how many. FUZZ_SEED=n begins with the case that failed;
// FUZZ_SECONDS=n runs each test for that long.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ExecutionContext } from 'ava';
import { errorText } from '../../shared/errors.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { createRandom, type Random } from '../support/random.ts';
import { startCaseWatch } from './case-watch.ts';

const firstSeed = Number(process.env['FUZZ_SEED'] ?? 1);
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 0);
/** Cases take milliseconds; a case that takes this long grows with something it should not. Processor time, since
 * others may load a small machine. */
const mostWorkMs = 5000;
/** Wall time: a case that waits in vain. */
const longestCaseMs = 30_000;
/** How much more memory may be held after all cases than before them. */
const mostResidentBytes = 64 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** `runOne` throws when a wrong result was returned. */
export async function fuzz(
  t: ExecutionContext,
  what: string,
  runOne: (random: Random) => void | Promise<void>,
  cases = 500,
): Promise<void> {
  t.timeout(seconds * 1000 + 300_000, 'the surface did not come to its end');
  const watch = startCaseWatch(what);
  const bytesBefore = await residentBytes();
  const endMs = performance.now() + seconds * 1000;
  let longestMs = 0;
  let seed = firstSeed;
  for (; performance.now() < endMs || seed < firstSeed + cases; seed++) {
    watch.begin(seed);
    const startMs = performance.now();
    const startWorkMs = cpuMs();
    try {
      await runOne(createRandom(seed));
    } catch (error) {
      watch.end();
      throw new Error(`FUZZ_SEED=${seed}: ${errorText(error)}`, { cause: error });
    }
    const workMs = cpuMs() - startWorkMs;
    const tookMs = performance.now() - startMs;
    if (workMs > mostWorkMs || tookMs > longestCaseMs) {
      watch.end();
      const text = `took ${Math.round(tookMs)} ms, ${Math.round(workMs)} ms of them work`;
      throw new Error(`FUZZ_SEED=${seed}: ${text}`);
    }
    longestMs = Math.max(longestMs, tookMs);
    if (seed % 100 === 0) await nextTurn();
  }
  watch.end();
  const grownBytes = (await residentBytes()) - bytesBefore;
  const count = seed - firstSeed;
  t.log(
    `${count} ${what} from seed ${firstSeed}, the longest took ${longestMs.toFixed(1)} ms,`,
    `${(grownBytes / 1e6).toFixed(1)} MB more are held`,
  );
  t.true(grownBytes < mostResidentBytes, `${grownBytes} bytes more are held`);
}

/** The memory that remains after a collection. */
async function residentBytes(): Promise<number> {
  // Memory is released some turns after a collection, which may allow further releases.
  for (let round = 0; round < 2; round++) {
    collectGarbage();
    await nextTurn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
