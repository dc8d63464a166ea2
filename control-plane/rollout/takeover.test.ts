// Two control planes on one record, each with workers, over real snapshots: one of them is killed at each write
// of the record, just before it and just after it, and comes back later.
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRevisionStore, revisionOf } from '../../test/support/revision-store.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { createSnapshotCache } from '../snapshot/cache.ts';
import { createDirectorySharedText } from '../store/directory-shared-text.ts';
import type { SharedText } from '../store/shared-text.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import type { RolloutFacts } from './facts.ts';
import { createLeadership, directoryTiming, gitTiming, type Leadership } from './leader.ts';
import { openOwnText } from './own-text.ts';
import { parseRolloutPlan } from './plan.ts';
import { parseRecord } from './record.ts';
import { createRollout, type Rollout } from './rollout.ts';
import { placeOf } from './share.ts';

interface Worker {
  readonly id: string;
  plane: 'a' | 'b';
  acked: string | undefined;
  nacked: string | undefined;
}

interface Plane {
  readonly rollout: Rollout;
  readonly leadership: Leadership;
  readonly cache: ReturnType<typeof createSnapshotCache>;
}

type Moment = 'before' | 'after';

const plan = parseRolloutPlan('20%:5s,50%:5s,100%');
const encode = loadProtos().rateLimitConfig.serialize;

/** `kill`: control plane `a` or `b`, whichever makes that write of the record, is killed at it. */
async function startFleet(
  t: ExecutionContext,
  kill: { readonly write: number; readonly moment: Moment },
  timing = directoryTiming,
) {
  if (!plan.ok) throw new Error(plan.reason);
  const clock = createManualClock();
  const log = createRecordedLog();
  const store = createRevisionStore(revisionOf(1));
  const folder = createRulesFolder(t).path;
  const text = createDirectorySharedText(folder, 'record');
  const events: string[] = [];
  const planes = new Map<string, Plane>();
  const workers: Worker[] = Array.from({ length: 12 }, (_, index) => ({
    id: `worker-${index}`,
    plane: index % 2 === 0 ? 'a' : 'b',
    acked: undefined,
    nacked: undefined,
  }));
  let starts = 0;
  let writes = 0;
  let killed: 'a' | 'b' | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const death = Promise.withResolvers<void>();

  /** One at a time. Counted are those that change the rollout, and succeed. */
  function killAtWrite(name: 'a' | 'b'): SharedText {
    async function swap(before: string | undefined, given: string) {
      const isNewest = (await text.read())?.version === before;
      const isCounted = isNewest && parseRecord(given)?.beat === 0;
      if (isCounted) writes++;
      if (!isCounted || killed !== undefined || writes !== kill.write) {
        return text.swap(before, given);
      }
      killed = name;
      if (kill.moment === 'after') await text.swap(before, given);
      planes.get(name)?.rollout.stop();
      planes.delete(name);
      death.resolve();
      const other = name === 'a' ? 'b' : 'a';
      for (const worker of workers) worker.plane = other;
      return undefined;
    }
    return {
      ...text,
      async swap(before, given) {
        const result = turn.then(() => swap(before, given));
        turn = result;
        // Nothing comes after a kill.
        return (await result) ?? new Promise(() => {});
      },
    };
  }

  async function start(name: 'a' | 'b'): Promise<void> {
    const stateDirectory = join(folder, name);
    const cache = createSnapshotCache({
      store,
      options: { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 },
      encode,
      stateDirectory,
      allowsRemoval: false,
      trials: { findBase: async () => undefined },
      log,
      clock,
    });
    const leadership = createLeadership({
      shared: { text: killAtWrite(name), timing },
      ownText: openOwnText(stateDirectory, store.description, log),
      id: `${name}-${++starts}`,
      name,
      log,
      clock,
    });
    const list = (): ConnectedWorker[] =>
      workers.flatMap(({ id, plane, acked, nacked }) =>
        plane !== name
          ? []
          : {
              node: { id, cluster: '', metadata: new Map<string, string>() },
              instance: undefined,
              address: '',
              mode: 'sotw' as const,
              sinceMs: 0,
              sent: undefined,
              acked: acked === undefined ? undefined : { version: acked, atMs: 0 },
              nacked: nacked === undefined ? undefined : { version: nacked, text: 'bad', atMs: 0 },
              wantedVersion: (snapshot) => snapshot.version,
            },
      );
    const rollout = createRollout({
      plan: plan.ok ? plan.plan : { steps: [], onSilence: 'proceed', overLimitPoints: 10 },
      snapshots: cache,
      workers: { list },
      readTraffic: () => new Map(),
      leadership,
      async askPeers(record): Promise<PeerAnswer<RolloutFacts>[]> {
        const peer = planes.get(name === 'a' ? 'b' : 'a');
        return peer === undefined
          ? [{ url: 'peer', error: 'refused', last: undefined }]
          : [{ url: 'peer', value: peer.rollout.tellPeer(record) }];
      },
      lookAtStore: async () => {},
      onEvent: ({ what }) => events.push(what),
      log,
      clock,
    });
    await leadership.start();
    await cache.start();
    rollout.start();
    planes.set(name, { rollout, leadership, cache });
    t.teardown(async () => {
      rollout.stop();
      await cache.close();
    });
  }

  function servedTo({ id, plane }: Worker) {
    const node = { id, cluster: '', metadata: new Map<string, string>() };
    return planes.get(plane)?.cache.current(node);
  }

  function having(): Worker[] {
    return workers.filter((worker) => servedTo(worker)?.resources.has('revision-2'));
  }

  await start('a');
  await start('b');
  return {
    store,
    planes,
    workers,
    events,
    log,
    having,
    restart: () => (killed === undefined ? Promise.resolve() : start(killed)),
    isKilled: () => killed !== undefined,
    readRecord: async () => parseRecord((await text.read())?.text ?? ''),
    /** A second, in which workers take what they are given, or refuse the second revision. */
    async pass(refuses: boolean): Promise<void> {
      for (const worker of workers) {
        const given = servedTo(worker);
        const isRefused = refuses && given?.resources.has('revision-2');
        worker.nacked = isRefused ? given?.version : undefined;
        if (!isRefused) worker.acked = given?.version;
      }
      clock.advance(1_000);
      for (const { leadership } of planes.values()) {
        const settled = leadership.settled();
        // One that is killed never settles.
        await (killed === undefined ? Promise.race([settled, death.promise]) : settled);
      }
      await new Promise(setImmediate);
    },
  };
}

const cases = [
  { what: 'a good revision', refuses: false, writes: [1, 2, 3, 4], outcome: 'in_force' },
  {
    what: 'a revision that workers refuse',
    refuses: true,
    writes: [1, 2, 3],
    outcome: 'taken_back',
  },
] as const;

for (const { what, refuses, writes, outcome } of cases) {
  for (const write of writes) {
    for (const moment of ['before', 'after'] as const) {
      test(`${what}: killed ${moment} write ${write} of the record, nothing stays half applied`, async (t) => {
        const fleet = await startFleet(t, { write, moment });
        for (let second = 0; second < 8; second++) await fleet.pass(refuses);
        fleet.store.publish(revisionOf(2));
        let most = 0;
        for (let second = 0; second < 100; second++) {
          await fleet.pass(refuses);
          const record = await fleet.readRecord();
          const limit = record?.outcome === 'in_force' ? 1 : (record?.limits[0] ?? -1);
          const having = fleet.having();
          most = Math.max(most, having.length);
          const tooMany = having.filter(({ id }) => placeOf(id) > limit);
          // A step back reaches a follower when it reads the record.
          if (record?.outcome !== 'taken_back') t.deepEqual(tooMany, [], `second ${second}`);
          if (second === 40) await fleet.restart();
        }
        t.true(fleet.isKilled());
        t.is((await fleet.readRecord())?.outcome, outcome);
        t.is(fleet.having().length, outcome === 'in_force' ? 12 : 0);
        for (const { cache, rollout } of fleet.planes.values()) {
          t.is(rollout.state(), undefined);
          t.is(cache.state().newest?.valid, outcome === 'in_force');
        }
        if (refuses) t.true(most <= 2, `${most} had it`);
        const isOpenAtKill = moment === 'after' ? write < writes.length : write > 1;
        const takeovers = fleet.events.filter((each) => each.startsWith('lead the rollout'));
        if (!refuses) t.is(takeovers.length, isOpenAtKill ? 1 : 0, fleet.events.join());
      });
    }
  }
}

test('the other control plane hears of the end before it would read the record', async (t) => {
  const fleet = await startFleet(t, { write: 0, moment: 'before' }, gitTiming);
  const ended = () =>
    [...fleet.planes.values()].filter(
      ({ cache }) => cache.state().inForce?.revision.id === revisionOf(2).id,
    );
  for (let second = 0; second < 8; second++) await fleet.pass(false);
  fleet.store.publish(revisionOf(2));
  for (let second = 0; second < 100 && ended().length === 0; second++) await fleet.pass(false);
  for (let second = 0; second < 2; second++) await fleet.pass(false);
  t.is(ended().length, 2);
});
