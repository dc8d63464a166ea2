// The rollout of a revision over real snapshots, with workers, traffic and time of the test's own.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import {
  createRevisionStore,
  type RevisionStore,
  revisionOf,
} from '../../test/support/revision-store.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { createSnapshotCache } from '../snapshot/cache.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';
import type { Revision } from '../store/revision.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import type { Traffic } from './judgement.ts';
import { createLeadership } from './leader.ts';
import { openOwnText } from './own-text.ts';
import { parseRolloutPlan } from './plan.ts';
import { createRollout } from './rollout.ts';

interface Worker {
  readonly node: NodeIdentity;
  readonly address: string;
  acked: string | undefined;
  nacked: string | undefined;
  traffic: Traffic | undefined;
}

interface Fleet {
  readonly workers: Worker[];
  publish(revision: Revision): void;
  /** Workers take what they are given, but for those that refuse it; and a time passes. */
  pass(seconds: number, answerOf?: (id: string) => 'ack' | 'nack' | 'none'): Promise<void>;
  /** The ids of the workers that are given the limits of this revision. */
  having(number: number): string[];
  readonly rollout: ReturnType<typeof createRollout>;
  readonly cache: ReturnType<typeof createSnapshotCache>;
  readonly log: ReturnType<typeof createRecordedLog>;
  /** What the audit log gets. */
  readonly events: readonly string[];
  readonly store: RevisionStore;
  readonly folder: string;
  stop(): Promise<void>;
}

async function startFleet(
  t: ExecutionContext,
  options: { plan?: string; count?: number; store?: RevisionStore; folder?: string } = {},
): Promise<Fleet> {
  const { plan: text = 'canary=10%,hold=60s', count = 50 } = options;
  const plan = parseRolloutPlan(text);
  if (!plan.ok) throw new Error(plan.reason);
  const folder = options.folder ?? join(createRulesFolder(t).path, 'state');
  const store = options.store ?? createRevisionStore(revisionOf(1));
  const log = createRecordedLog();
  const clock = createManualClock();
  const cache = createSnapshotCache({
    store,
    options: { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 },
    encode: loadProtos().rateLimitConfig.serialize,
    stateDirectory: folder,
    allowsRemoval: false,
    trials: { findBase: async () => undefined },
    log,
    clock,
  });
  const workers: Worker[] = Array.from({ length: count }, (_, index) => ({
    node: { id: `worker-${index}`, cluster: '', metadata: new Map() },
    address: `10.0.0.${index}:1`,
    acked: undefined,
    nacked: undefined,
    traffic: undefined,
  }));
  const list = (): ConnectedWorker[] =>
    workers.map(({ node, address, acked, nacked }) => ({
      node,
      instance: undefined,
      address,
      mode: 'sotw',
      sinceMs: 0,
      sent: undefined,
      acked: acked === undefined ? undefined : { version: acked, atMs: 0 },
      nacked: nacked === undefined ? undefined : { version: nacked, text: 'bad unit', atMs: 0 },
      wantedVersion: (snapshot) => snapshot.version,
    }));
  const ownText = openOwnText(folder, store.description, log);
  const name = 'this:1';
  const deps = { shared: undefined, ownText, id: randomUUID(), name, log, clock };
  const leadership = createLeadership(deps);
  const events: string[] = [];
  const rollout = createRollout({
    plan: plan.plan,
    snapshots: cache,
    workers: { list },
    readTraffic: () =>
      new Map(workers.flatMap(({ node, traffic }) => (traffic ? [[node.id, traffic]] : []))),
    leadership,
    askPeers: undefined,
    lookAtStore: async () => {},
    onEvent: ({ what }) => events.push(what),
    log,
    clock,
  });
  await leadership.start();
  await cache.start();
  rollout.start();
  function settle(answerOf: (id: string) => 'ack' | 'nack' | 'none'): void {
    for (const worker of workers) {
      const version = cache.current(worker.node)?.version;
      const answer = version === worker.acked ? 'ack' : answerOf(worker.node.id);
      if (answer === 'none') continue;
      worker.nacked = answer === 'nack' ? version : undefined;
      if (answer === 'ack') worker.acked = version;
    }
  }
  const fleet: Fleet = {
    workers,
    rollout,
    cache,
    log,
    events,
    store,
    folder,
    publish: store.publish,
    async pass(seconds, answerOf = () => 'ack') {
      for (let second = 0; second < seconds; second++) {
        settle(answerOf);
        clock.advance(1_000);
        await new Promise(setImmediate);
      }
      settle(answerOf);
    },
    having: (number) =>
      workers
        .filter(({ node }) => cache.current(node)?.resources.has(`revision-${number}`))
        .map(({ node }) => node.id),
    async stop() {
      rollout.stop();
      await leadership.stop();
      await ownText.settled();
      await cache.close();
    },
  };
  t.teardown(fleet.stop);
  // The workers of a start are awaited.
  await fleet.pass(10);
  return fleet;
}

const noTraffic: Traffic = { decisions: 0, overLimit: 0, errors: 0 };

/** What each worker counts in a second; `having` is for those that have the revision. */
function drive(
  fleet: Fleet,
  number: number,
  having: Partial<Traffic>,
  others: Partial<Traffic> = {},
) {
  const takers = new Set(fleet.having(number));
  for (const worker of fleet.workers) {
    const {
      decisions = 200,
      overLimit = 0,
      errors = 0,
    } = takers.has(worker.node.id) ? having : others;
    const before = worker.traffic ?? noTraffic;
    worker.traffic = {
      decisions: before.decisions + decisions,
      overLimit: before.overLimit + overLimit,
      errors: before.errors + errors,
    };
  }
}

async function passWithTraffic(
  fleet: Fleet,
  seconds: number,
  number: number,
  having: Partial<Traffic> = {},
  others: Partial<Traffic> = {},
): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    drive(fleet, number, having, others);
    await fleet.pass(1);
  }
}

test('a share of the workers gets a revision first, and the others when they have held it', async (t) => {
  const fleet = await startFleet(t, { plan: '5%:30s,25%:60s,100%', count: 100 });
  fleet.publish(revisionOf(2));
  await fleet.pass(2);
  const first = fleet.having(2);
  t.is(first.length, 5);
  t.is(fleet.having(1).length, 95);
  t.like(fleet.rollout.state(), { step: 1, steps: 3, phase: 'holding' });
  await passWithTraffic(fleet, 29, 2);
  t.is(fleet.having(2).length, 5);
  await passWithTraffic(fleet, 3, 2);
  t.is(fleet.having(2).length, 25);
  t.true(first.every((id) => fleet.having(2).includes(id)));
  await passWithTraffic(fleet, 62, 2);
  t.is(fleet.having(2).length, 100);
  t.is(fleet.rollout.state(), undefined);
  t.is(fleet.cache.state().inForce?.revision.id, revisionOf(2).id);
});

/** Workers 0 to 9 are for tests, the others are in production. */
const groups = `
groups:
  - name: tests
    match: { id: worker-? }
    domains: '*'
    rollout: 100%
  - name: production
    domains: '*'
    rollout: 0%:10s,10%:20s,100%
`;

function withGroups(revision: Revision): Revision {
  return {
    ...revision,
    files: [...revision.files, { path: 'node-groups.yaml', text: groups }],
  };
}

test('groups of nodes with steps of their own take them at the same time', async (t) => {
  const fleet = await startFleet(t, { count: 60 });
  fleet.publish(withGroups(revisionOf(2)));
  await fleet.pass(2);
  const tests = fleet.having(2);
  t.is(tests.length, 10);
  t.true(tests.every((id) => /^worker-\d$/.test(id)));
  t.like(fleet.rollout.state(), { step: 1, steps: 3, workers: { having: 10, others: 50 } });
  // The hold is the longest of all: that of --rollout.
  await passWithTraffic(fleet, 57, 2);
  t.is(fleet.having(2).length, 10);
  await passWithTraffic(fleet, 5, 2);
  t.is(fleet.having(2).length, 15);
  await passWithTraffic(fleet, 22, 2);
  t.is(fleet.having(2).length, 60);
  t.is(fleet.rollout.state(), undefined);
});

test('a step in which nobody would get the revision is passed over', async (t) => {
  const fleet = await startFleet(t, { count: 60 });
  fleet.workers.splice(0, 10);
  // Until nobody comes or goes any more.
  await fleet.pass(8);
  fleet.publish(withGroups(revisionOf(2)));
  await fleet.pass(2);
  t.like(fleet.rollout.state(), { step: 2, steps: 3, workers: { having: 5, others: 45 } });
});

test('a group with steps of its own is compared with its own workers only', async (t) => {
  const fleet = await startFleet(t, { count: 60 });
  fleet.publish(withGroups(revisionOf(2)));
  await passWithTraffic(fleet, 70, 2);
  t.is(fleet.having(2).length, 15);
  const production = new Set(fleet.having(2).filter((id) => id.length > 'worker-1'.length));
  t.is(production.size, 5);
  // The tests are over limit all the time, and hide what five of production do.
  for (let second = 0; second < 5 && fleet.rollout.state(); second++) {
    for (const worker of fleet.workers) {
      const { decisions, overLimit, errors } = worker.traffic ?? noTraffic;
      const isTest = worker.node.id.length === 'worker-1'.length;
      const more = isTest ? 100_000 : 200;
      const over = isTest ? 100_000 : production.has(worker.node.id) ? 100 : 0;
      worker.traffic = { decisions: decisions + more, overLimit: overLimit + over, errors };
    }
    await fleet.pass(1);
  }
  t.regex(
    fleet.cache.state().newest?.problems.at(-1)?.message ?? '',
    /^taken back: node group 'production': over limit 11.1 % where it is, 0.0 % elsewhere \(9000 /,
  );
  t.is(fleet.having(1).length, 60);
});

test('of a revision that is refused no more than the share ever sees anything', async (t) => {
  const fleet = await startFleet(t);
  const seen = new Set<string>();
  fleet.publish(revisionOf(2));
  for (let second = 0; second < 10; second++) {
    await fleet.pass(1, (id) => {
      seen.add(id);
      return 'nack';
    });
  }
  t.is(seen.size, 5);
  t.is(fleet.having(1).length, 50);
  t.regex(
    fleet.events.join(),
    /^take back revision 0+: worker 'worker-\d+' refuses it: bad unit; 5/,
  );
  const { newest, inForce } = fleet.cache.state();
  t.false(newest?.valid);
  t.is(inForce?.revision.id, revisionOf(1).id);
  t.regex(
    newest?.problems.at(-1)?.message ?? '',
    /^taken back: worker 'worker-\d+' refuses it: bad unit; 5 workers had it$/,
  );
});

test('a revision that refuses far more requests than the one before is taken back', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await passWithTraffic(fleet, 5, 2, { overLimit: 100 }, { overLimit: 2 });
  t.is(fleet.having(1).length, 50);
  t.regex(
    fleet.cache.state().newest?.problems.at(-1)?.message ?? '',
    /^taken back: over limit 50\.0 % where it is, 1\.0 % elsewhere \(\d+ decisions with it, \d+ without\)/,
  );
});

test('a revision that makes decisions fail is taken back', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await passWithTraffic(fleet, 5, 2, { errors: 6 });
  t.is(fleet.having(2).length, 0);
  t.regex(fleet.cache.state().newest?.problems.at(-1)?.message ?? '', /errors 2\.9 % where it is/);
});

test('with too little traffic a step is watched twice, and then goes on or waits for somebody', async (t) => {
  const going = await startFleet(t);
  going.publish(revisionOf(2));
  await going.pass(100);
  t.is(going.having(2).length, 5);
  t.is(going.rollout.state()?.phase, 'silent');
  await going.pass(25);
  t.is(going.having(2).length, 50);

  const stopping = await startFleet(t, { plan: 'canary=10%,hold=10s,on-silence=stop' });
  stopping.publish(revisionOf(2));
  await stopping.pass(100);
  t.is(stopping.having(2).length, 5);
  t.is(stopping.rollout.state()?.phase, 'paused');
  t.regex(
    stopping.rollout.state()?.text ?? '',
    /^too little traffic to judge: 0 decisions with it/,
  );
  t.is(await stopping.rollout.act('promote', 'seen by eye'), undefined);
  t.is(stopping.having(2).length, 50);
});

test('a worker that does not answer keeps the others from getting the revision', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await fleet.pass(200, (id) => (id === fleet.having(2)[0] ? 'none' : 'ack'));
  t.is(fleet.having(2).length, 5);
  t.regex(fleet.rollout.state()?.text ?? '', /^waits for 1 worker, such as 'worker-\d+'$/);
});

test('somebody pauses, resumes and aborts', async (t) => {
  const fleet = await startFleet(t);
  t.is(await fleet.rollout.act('abort', 'x'), 'no rollout is under way');
  fleet.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(await fleet.rollout.act('resume', 'x'), 'the rollout is not paused');
  t.is(await fleet.rollout.act('pause', 'paused by ada: lunch'), undefined);
  t.is(await fleet.rollout.act('pause', 'x'), 'the rollout is paused already');
  await passWithTraffic(fleet, 200, 2);
  t.is(fleet.having(2).length, 5);
  t.is(await fleet.rollout.act('resume', 'x'), undefined);
  await passWithTraffic(fleet, 5, 2);
  t.is(await fleet.rollout.act('abort', 'aborted by ada: wrong file'), undefined);
  t.is(fleet.having(2).length, 0);
  t.is(
    fleet.cache.state().newest?.problems.at(-1)?.message,
    'taken back: aborted by ada: wrong file; 5 workers had it',
  );
});

test('a revision that comes during a rollout waits for its end', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.publish(revisionOf(3));
  await passWithTraffic(fleet, 10, 2);
  t.is(fleet.having(3).length, 0);
  t.true(fleet.cache.state().newest?.isWaiting);
  await fleet.rollout.act('abort', 'wrong');
  await fleet.pass(2);
  t.is(fleet.having(3).length, 5);
  t.is(fleet.having(1).length, 45);
});

test('a revision may supersede the one on its way, and another may go to everybody at once', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.publish(revisionOf(3, 'better\n\nRollout: supersede'));
  await fleet.pass(2);
  t.is(fleet.having(2).length, 0);
  t.is(fleet.having(3).length, 5);
  fleet.publish(revisionOf(4, 'the shop is down\n\nRollout: now'));
  t.is(fleet.having(4).length, 50);
  await fleet.pass(2);
  t.is(fleet.rollout.state(), undefined);
});

test('going back to what is in force ends a rollout', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.publish({ ...revisionOf(1), id: 'f'.repeat(40) });
  await fleet.pass(1);
  t.is(fleet.having(1).length, 50);
  t.is(fleet.rollout.state(), undefined);
});

test('where workers cannot be compared, everybody gets a revision', async (t) => {
  const fleet = await startFleet(t, { count: 1 });
  await fleet.pass(40);
  fleet.publish(revisionOf(2));
  await fleet.pass(2);
  t.is(fleet.having(2).length, 1);
});

test('workers that connect later do not make a step larger than its share', async (t) => {
  const fleet = await startFleet(t, { count: 2 });
  fleet.publish(revisionOf(2));
  await fleet.pass(2);
  t.is(fleet.having(2).length, 1);
  for (let index = 100; index < 130; index++) {
    const node = { id: `late-${index}`, cluster: '', metadata: new Map<string, string>() };
    fleet.workers.push({
      node,
      address: '',
      acked: undefined,
      nacked: undefined,
      traffic: undefined,
    });
  }
  await fleet.pass(2);
  t.true(fleet.having(2).length <= 3);
});

test('a control plane that is killed goes on where it was, with the same workers', async (t) => {
  const first = await startFleet(t, { plan: '5%:30s,25%:60s,100%', count: 100 });
  first.publish(revisionOf(2));
  await first.pass(2);
  await passWithTraffic(first, 35, 2);
  const before = first.having(2);
  t.is(before.length, 25);
  await first.stop();
  const second = await startFleet(t, {
    plan: '5%:30s,25%:60s,100%',
    count: 100,
    store: first.store,
    folder: first.folder,
  });
  t.deepEqual(second.having(2), before);
  t.is(second.cache.state().inForce?.revision.id, revisionOf(1).id);
  await passWithTraffic(second, 62, 2);
  t.is(second.having(2).length, 100);
});

test('what was taken back or paused stays so after a restart', async (t) => {
  const first = await startFleet(t);
  first.publish(revisionOf(2));
  await first.pass(5);
  await first.rollout.act('abort', 'wrong file');
  await first.stop();
  const { store, folder } = first;
  const second = await startFleet(t, { store, folder });
  t.is(second.having(2).length, 0);
  t.is(
    second.cache.state().newest?.problems.at(-1)?.message,
    'taken back: wrong file; 5 workers had it',
  );
  second.publish(revisionOf(3));
  await second.pass(5);
  await second.rollout.act('pause', 'lunch');
  const having = second.having(3);
  await second.stop();
  const third = await startFleet(t, { store, folder });
  await passWithTraffic(third, 100, 3);
  t.deepEqual(third.having(3), having);
  t.is(third.rollout.state()?.phase, 'paused');
});

test('a control plane that is killed waits for its workers before it goes on', async (t) => {
  const first = await startFleet(t);
  first.publish(revisionOf(2));
  await first.pass(5);
  await first.stop();
  const { store, folder } = first;
  const second = await startFleet(t, { store, folder, count: 0 });
  t.is(second.rollout.state()?.phase, 'gathering');
  second.workers.push(...first.workers);
  t.is(second.having(2).length, 5, 'they are served as before meanwhile');
  await second.pass(20);
  t.is(second.rollout.state()?.phase, 'holding');
  t.deepEqual(second.events, [
    'lead the rollout of revision 000000000000 after this:1: it goes on at step 1',
  ]);
});

test('the same rules that come again after they were taken back, or after others, are rolled out anew', async (t) => {
  const fleet = await startFleet(t);
  fleet.publish(revisionOf(2));
  await fleet.pass(3);
  await fleet.rollout.act('abort', 'wrong');
  await fleet.pass(2);
  fleet.publish(revisionOf(1));
  await fleet.pass(2);
  fleet.publish(revisionOf(2));
  await fleet.pass(3);
  t.is(fleet.having(2).length, 5);
  await fleet.rollout.act('promote', 'seen by eye');
  await fleet.pass(2);
  t.is(fleet.having(2).length, 50);
  fleet.publish(revisionOf(1, 'the shop is down\n\nRollout: now'));
  await fleet.pass(2);
  t.is(fleet.having(1).length, 50);
  fleet.publish(revisionOf(2));
  await fleet.pass(3);
  t.is(fleet.having(2).length, 5);
});
