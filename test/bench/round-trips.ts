// Measures how many commands the store gets per decision, and the effect on latencies, with a store next door, in the
// same building, or further away.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from './bench.ts';
import { findScenario } from './scenario.ts';
import type { Service } from './service.ts';
import { startDelayedWay } from './store.ts';

export type RoundTripMeasurement = Awaited<ReturnType<typeof measureOne>>;

const roundTripsMs = [0, 0.5, 2];
const ratePerSecond = 4_000;
const minuteMs = 60_000;
const warmUpMs = 1_500;
const measuredMs = 3_000;

export async function measureRoundTrips(
  bench: Bench,
  services: readonly Service[],
  onMeasured: (measurement: RoundTripMeasurement) => void,
): Promise<void> {
  for (const roundTripMs of roundTripsMs) {
    for (const service of services) {
      const way =
        roundTripMs > 0 ? await startDelayedWay(bench.redis.port, roundTripMs) : undefined;
      try {
        onMeasured(await measureOne(bench, service, roundTripMs, way?.address));
      } finally {
        await way?.stop();
      }
    }
  }
}

async function measureOne(
  bench: Bench,
  service: Service,
  roundTripMs: number,
  address: string | undefined,
) {
  const hot = findScenario('redis-1-key');
  const many = findScenario('redis-10k-keys');
  const running = await bench.start(service, hot, address);
  try {
    const oneKey = await bench.load(running, service, hot, {
      ratePerSecond: undefined,
      warmUpMs,
      measuredMs,
    });
    // The store is emptied, so every key is new the first time; both uses are in the same minute's window.
    await bench.redis.clear();
    const passMs = (many.distinctKeys * 1000) / ratePerSecond;
    await leaveRoomInMinute(3 * passMs);
    const usedOnce = () =>
      bench.load(running, service, many, {
        ratePerSecond,
        warmUpMs: 0,
        measuredMs: passMs,
        keyOrder: 'sequence',
      });
    const whenNew = await usedOnce();
    const whenKnown = await usedOnce();
    const problems = [oneKey, whenNew, whenKnown].flatMap(({ failures, unsent }) => [
      ...Object.entries(failures).map(([kind, count]) => `${kind}: ${count}`),
      ...(unsent > 0 ? ['the rate was not reached'] : []),
    ]);
    return {
      service: service.name,
      roundTripMs,
      /** At saturation with a single key. */
      oneKey: {
        commandsPerDecision: oneKey.storeCommands.total,
        decisionsPerSecond: oneKey.answered / oneKey.seconds,
        p99Us: oneKey.latencyUs.p99,
      },
      /** With 10,000 keys of minute limits, each used twice. */
      manyKeys: { whenNew: whenNew.storeCommands.total, whenKnown: whenKnown.storeCommands.total },
      problems: [...new Set(problems)],
    };
  } finally {
    await running.stop();
  }
}

async function leaveRoomInMinute(ms: number): Promise<void> {
  const leftMs = minuteMs - (Date.now() % minuteMs);
  if (leftMs < ms) await sleep(leftMs);
}
