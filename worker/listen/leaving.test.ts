import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { pluck } from '../../test/support/pluck.ts';
import { type LeavingPort, letCallersLeave } from './leaving.ts';

interface Port extends LeavingPort {
  asked: number;
}

function createPort(expectsCallers: boolean): Port & { turnedAway: number } {
  return {
    asked: 0,
    turnedAway: 0,
    turnAway() {
      this.turnedAway++;
      return expectsCallers;
    },
  };
}

/** Waits until bytes that arrive after the timers have been read. */
async function readOn(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

test('a port that expects no callers does not wait', async (t) => {
  const clock = createManualClock();
  const ports = [createPort(false), createPort(false)];
  await letCallersLeave(ports, 2_000, clock);
  t.is(clock.pending, 0);
  t.deepEqual(pluck(ports, 'turnedAway'), [1, 1]);
});

for (const which of [0, 1]) {
  test(`callers of port ${which + 1} of 2 are served until they have stopped asking, within bounds`, async (t) => {
    const clock = createManualClock();
    const ports = [createPort(which === 0), createPort(which === 1)] as const;
    const asked = ports[which] ?? ports[0];
    /** How long leaving takes if a request arrives in each of the first `quarters` quarters of a second. */
    const leave = async (quarters: number) => {
      let hasLeft = false;
      const leaving = letCallersLeave(ports, 2_000, clock).then(() => {
        hasLeft = true;
      });
      let waitedMs = 0;
      for (; !hasLeft && waitedMs < 5_000; waitedMs += 250) {
        if (waitedMs < quarters * 250) asked.asked++;
        clock.advance(250);
        await readOn();
      }
      await leaving;
      return waitedMs;
    };
    t.is(await leave(0), 250);
    t.is(await leave(3), 1_000);
    t.is(await leave(100), 2_000);
    t.true(ports.every(({ turnedAway }) => turnedAway === 3));
  });
}

test('requests that came while the process stalled are seen before it is quiet', async (t) => {
  const clock = createManualClock();
  const port = createPort(true);
  let hasLeft = false;
  const leaving = letCallersLeave([port], 2_000, clock).then(() => {
    hasLeft = true;
  });
  setImmediate(() => port.asked++);
  clock.stall(250);
  await readOn();
  t.false(hasLeft);
  clock.advance(250);
  await leaving;
  t.true(hasLeft);
});
