import test from 'ava';
import { revisionOf } from '../../test/support/revision-store.ts';
import { startSimulatedFleet } from '../../test/support/simulated-fleet.ts';

test('a good revision arrives', async (t) => {
  const fleet = await startSimulatedFleet(t, {});
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.log(fleet.plane.rollout.state(), fleet.readRecord());
  t.is(fleet.having(2).length, 2);
  await fleet.pass(70);
  t.log(fleet.plane.rollout.state(), fleet.log.lines);
  t.is(fleet.having(2).length, 20);
});
