// Tests what holders of tokens can and cannot do with a rollout (SECURITY.md).

import test from 'ava';
import { gitTiming, RecordKeeper } from '../../../control-plane/server/record/record-keeper.ts';
import { leads } from '../../../control-plane/server/record/record-state.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { createMemoryText, createSimulatedText } from '../../support/record-texts.ts';
import { createRecordedLog } from '../../support/recorded-log.ts';
import { revisionOf } from '../../support/revision-store.ts';
import { startSimulatedFleet } from '../../support/simulated-fleet.ts';

// Proof of SECURITY.md: outvotes others with enough connections
test('a caller that opens enough connections outvotes the other workers of a rollout', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=1h', workers: 10 });
  for (let index = 0; index < 90; index++) {
    fleet.addWorker({ id: `stranger-${index}`, plane: 'a', answer: 'refuse' });
  }
  await fleet.pass(10);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(10);
  t.regex(
    fleet.plane.cache.state().newest?.problems.at(-1)?.message ?? '',
    /^taken back: worker 'stranger-\d+' refuses it/,
  );
});

// Proof of SECURITY.md: reads rules, revisions, workers, limited values and what peers ask; changes nothing
test('a reader can see a rollout, but neither steer it nor approve anything', async (t) => {
  const token = 'r'.repeat(32);
  const { port } = await startAdminApi(t, {
    files: { 'a.yaml': 'domain: a\n' },
    tokens: `ann read ${token}\n`,
  });
  const ask = async (method: string, path: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = method === 'GET' ? {} : { body: '{}' };
    return (await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...body })).status;
  };
  for (const path of ['/status', '/rollouts', '/rollouts/workers', '/workers', '/top']) {
    t.is(await ask('GET', path), 200, path);
  }
  for (const path of ['/rollouts', '/approvals', '/rollbacks', '/revisions', '/resets', '/lifts']) {
    t.is(await ask('POST', path), 403, path);
  }
});

// Proof of SECURITY.md: by false hints delays another leader until the lease ends; the record is read every 2 s
// at most
test('hints about the record make a control plane read it at most every two seconds', async (t) => {
  const clock = createManualClock();
  const shared = createSimulatedText();
  let reads = 0;
  const keeper = new RecordKeeper({
    shared: {
      ...shared,
      read() {
        reads++;
        return shared.read();
      },
    },
    timing: gitTiming,
    steps: '',
    own: createMemoryText(),
    id: 'this',
    name: 'this:1',
    log: createRecordedLog(),
    clock,
  });
  await keeper.start();
  reads = 0;
  for (let tenths = 0; tenths < 600; tenths++) {
    keeper.happen({ kind: 'noticed', contentId: `another one ${tenths}` });
    clock.advance(100);
    keeper.happen({ kind: 'tick', isWaiting: false });
    await keeper.settled();
  }
  t.true(reads >= 25 && reads <= 30, `${reads} reads in a minute`);
  await keeper.stop();
});

// Proof of SECURITY.md: by false hints delays another leader until the lease ends; the record is read every 2 s
// at most
test('hints from a reader do not prevent others from taking over a rollout and taking it back', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=20%,hold=1h', planes: ['a', 'b'] });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(fleet.having(2).length, 4);
  const [leader, other] = [...fleet.planes.values()].sort((a) => (leads(a.keeper.state) ? -1 : 1));
  if (leader === undefined || other === undefined) return t.fail('no one leads');
  fleet.killPlane(leader.name, other.name);
  fleet.effects.set(2, { overLimit: 0.5 });
  let seconds = 0;
  for (; seconds < 60 && fleet.having(2).length > 0; seconds++) {
    other.rollout.answerPeer(`a hint ${seconds}`);
    await fleet.pass(1);
  }
  t.true(seconds <= 15, `${seconds} seconds`);
});
