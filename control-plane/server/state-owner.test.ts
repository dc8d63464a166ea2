import { readdirSync } from 'node:fs';
import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { ownerCheckMs, StateOwner } from './state-owner.ts';

test('two control planes on one state directory name each other, once each', async (t) => {
  const stateDirectory = createTemporaryFolder(t);
  const clock = createManualClock();
  const [one, other] = ['host:1', 'host:2'].map((name) => {
    const log = createRecordedLog();
    return { log, owner: new StateOwner({ stateDirectory, name, log, clock }) };
  }) as [Owned, Owned];
  await one.owner.start();
  await other.owner.start();
  for (const { log } of [one, other]) {
    const check = () => {
      clock.advance(ownerCheckMs);
      return log.lines.length > 0;
    };
    t.true(await waitUntil(check, 30_000));
  }
  for (const _ of [1, 2, 3]) clock.advance(ownerCheckMs);
  await one.owner.stop();
  await other.owner.stop();
  t.is(one.log.lines.length, 1);
  t.is(other.log.lines.length, 1);
  t.regex(one.log.lines[0] ?? '', /state directory of another control plane as well \(host:2\)/);
  t.regex(other.log.lines[0] ?? '', /\(host:1\).*--state-dir/);
});

test('a killed control plane does not count as another one, and no files remain', async (t) => {
  const stateDirectory = createTemporaryFolder(t);
  const clock = createManualClock();
  const log = createRecordedLog();
  await new StateOwner({ stateDirectory, name: 'killed', log, clock: createManualClock() }).start();
  const owner = new StateOwner({ stateDirectory, name: 'next', log, clock });
  await owner.start();
  clock.advance(ownerCheckMs);
  await owner.stop();
  t.deepEqual(log.lines, []);
  t.deepEqual(readdirSync(stateDirectory), []);
});

interface Owned {
  readonly log: ReturnType<typeof createRecordedLog>;
  readonly owner: StateOwner;
}
