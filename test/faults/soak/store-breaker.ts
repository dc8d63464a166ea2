// Repeatedly breaks the connection from a worker to its store, and checks that hits are counted soon after each repair.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { Caller } from '../../support/worker-caller.ts';
import type { SoakStore } from './configuration.ts';
import { drawFault, drawMs, longestFaultMs, recoveryMs } from './draw-fault.ts';
import type { Findings } from './findings.ts';
import { limit } from './ledger.ts';

export interface StoreBreakerDeps {
  /** Prefix of the requested values. */
  readonly prefix: string;
  readonly caller: Caller;
  readonly store: SoakStore;
  readonly proxy: TcpProxy;
  readonly findings: Findings;
}

/** Consecutive counters that must be counted: one connection may recover before another. */
const probesInARow = 5;
const hitsBeyond = 5;
const longestPauseMs = 1_500;

export function createStoreBreaker(deps: StoreBreakerDeps) {
  const { caller, store, proxy, findings } = deps;
  let isTroubled = false;
  let lastTroubledMs = Number.NEGATIVE_INFINITY;
  let probes = 0;

  const isCounted = (value: string, hits: number, withinMs: number) =>
    waitUntil(async () => (await store.countOf(value)) === hits, withinMs);

  function becomesWell(): Promise<boolean> {
    let inARow = 0;
    return waitUntil(async () => {
      const value = `${deps.prefix}probe${probes++}`;
      await caller.decide('d', 'k', value);
      inARow = (await isCounted(value, 1, 500)) ? inARow + 1 : 0;
      return inARow === probesInARow;
    }, recoveryMs);
  }

  return {
    /** Whether the store had a fault at some time since then, on performance.now(). */
    wasTroubledSince: (ms: number) => isTroubled || lastTroubledMs >= ms,
    /** Runs until `isOver`. */
    async run(random: Random, isOver: () => boolean) {
      while (!isOver()) {
        await sleep(drawMs(random, longestPauseMs));
        isTroubled = true;
        // In quick succession: requests held by a slow or silent server are lost when its connections end.
        do {
          const fault = drawFault(random);
          findings.noteFault(`store ${fault.kind}`);
          proxy.inject(fault);
          await sleep(drawMs(random, longestFaultMs));
        } while (random.chance(0.6));
        proxy.heal();
        const healedMs = performance.now();
        const isWell = await becomesWell();
        isTroubled = false;
        lastTroubledMs = performance.now();
        const tookMs = Math.round(lastTroubledMs - healedMs);
        findings.longestRecoveryMs = Math.max(findings.longestRecoveryMs, tookMs);
        findings.check('the store counts again after a repair', isWell, `not in ${tookMs} ms`);
      }
    },
    /** Call when no other requests are running: uses up one more limit, from its first hit to beyond its last. */
    async checkExact() {
      let text = '';
      const hits = limit + hitsBeyond;
      // On a busy machine the worker may consider a slow memory cache unreachable: then it is repeated.
      const isExact = await waitUntil(async () => {
        const value = `${deps.prefix}exact${probes++}`;
        let ok = 0;
        for (let hit = 0; hit < hits; hit++)
          if ((await caller.decide('d', 'k', value)) === 'OK') ok++;
        const isComplete = await isCounted(value, hits, 2_000);
        text = `${ok} OK of ${limit}, ${await store.countOf(value)} of ${hits} counted`;
        return isComplete && ok === limit;
      }, recoveryMs);
      findings.check('in the end all is exact', isExact, text);
    },
  };
}
