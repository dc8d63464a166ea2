// Tests that the rights of open calls are checked repeatedly, some calls at a time.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { OpenRights } from './open-rights.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function start(count: number) {
  const clock = createManualClock();
  const lost: string[] = [];
  const rights = new OpenRights<number>({
    clock,
    onLost: (call, reason) => void lost.push(`${call}: ${reason}`),
  });
  const reasons = new Map<number, string>();
  let asked = 0;
  const add = (call: number) =>
    rights.add(call, () => {
      asked++;
      return reasons.get(call);
    });
  for (let call = 0; call < count; call++) add(call);
  return { clock, rights, reasons, lost, asked: () => asked };
}

test('every call is checked every ten seconds, a hundred per turn', async (t) => {
  const { clock, asked } = start(250);
  clock.advance(9_999);
  t.is(asked(), 0);
  clock.advance(1);
  const counts = [asked()];
  for (let turns = 0; turns < 4; turns++) {
    await turn();
    counts.push(asked());
  }
  t.deepEqual(counts, [100, 200, 250, 250, 250]);
  clock.advance(10_000);
  t.is(asked(), 350);
});

test('a call that has lost its right is reported once, and the others are still checked', async (t) => {
  const { clock, reasons, lost, asked } = start(3);
  reasons.set(0, 'revoked').set(2, 'expired');
  clock.advance(10_000);
  t.deepEqual(lost, ['0: revoked', '2: expired']);
  await turn();
  clock.advance(10_000);
  t.is(lost.length, 2);
  t.is(asked(), 4);
});

test('without open calls, and after a stop, nothing is checked', async (t) => {
  const { clock, rights, asked } = start(101);
  clock.advance(10_000);
  rights.stop();
  await turn();
  t.is(asked(), 100);
  t.is(clock.pending, 0);
  rights.add(-1, () => undefined);
  for (let call = -1; call < 101; call++) rights.delete(call);
  t.is(clock.pending, 0);
});
