// Tests what is recorded about a worker for as long as it is connected.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import {
  type ConnectedWorker,
  createWorkerRegistry,
  markUnused,
  toWorkerState,
} from './workers.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const anything = () => undefined;
const nodeOf = (id: string, instance?: string) => ({
  id,
  cluster: '',
  metadata: new Map(instance === undefined ? [] : [['ratelane.instance', instance]]),
});

test('the newest thousand workers whose connections broke are listed, for an hour', (t) => {
  const clock = createManualClock();
  const workers = createWorkerRegistry(clock);
  for (let index = 0; index < 1_100; index++) {
    const worker = workers.joined(nodeOf('w', `i-${index}`), '', 'sotw', anything);
    clock.advance(1_000);
    worker.left('broke');
    worker.left('broke');
  }
  const instances = () => workers.vanished().map(({ instance }) => instance);
  t.is(instances().length, 1_000);
  t.deepEqual([instances()[0], instances().at(-1)], ['i-100', 'i-1099']);
  clock.advance(3_600_000 - 10_000);
  t.is(instances().length, 10);
  clock.advance(10_000);
  t.deepEqual(instances(), []);
});

test('a worker without an instance has reconnected when one with its node id has, even before the break was noticed', (t) => {
  const workers = createWorkerRegistry(createManualClock());
  const first = workers.joined(nodeOf('w'), '', 'sotw', anything);
  first.left('broke');
  t.is(workers.vanished().length, 1);
  const second = workers.joined(nodeOf('w'), '', 'sotw', anything);
  t.is(workers.vanished().length, 0);
  const third = workers.joined(nodeOf('w'), '', 'sotw', anything);
  second.left('broke');
  t.is(workers.vanished().length, 0);
  third.left('broke');
  t.is(workers.vanished().length, 1);
});

test('an empty instance counts as missing', (t) => {
  const workers = createWorkerRegistry(createManualClock());
  workers.joined(nodeOf('w', ''), '', 'sotw', anything);
  t.is(workers.list()[0]?.instance, undefined);
});

test('only the beginning of a refusal of several megabytes is kept', (t) => {
  const workers = createWorkerRegistry(createManualClock());
  const before = heapBytes();
  for (let index = 0; index < 40; index++) {
    const node = { id: `${index}`, cluster: '', metadata: new Map() };
    const record = workers.joined(node, '', 'sotw', () => undefined);
    record.nacked('1', Buffer.alloc(1_000_000, 'no ').toString());
  }
  const grown = heapBytes() - before;
  t.is(workers.list()[39]?.nacked?.text, 'no '.repeat(1366).slice(0, 4096));
  t.true(grown < 10_000_000, `grown by ${grown} bytes`);
});

test('a worker that decides by another version ten seconds after its acknowledgement is pending', (t) => {
  const worker: ConnectedWorker = {
    ...{ node: { id: 'w', cluster: '', metadata: new Map() }, instance: 'i', address: '' },
    ...{ mode: 'sotw', sinceMs: 0, sent: undefined, nacked: undefined },
    acked: { version: 'v2', atMs: 0, sinceMs: 1_000 },
    wantedVersion: () => 'v2',
  };
  const snapshot = { version: 'v2', resources: new Map() };
  const stateOf = (version: string | undefined, nowMs: number, given = worker) => {
    const reported = new Map(version === undefined ? [] : [['i', { version }]]);
    const [first = given] = markUnused([given], reported, nowMs);
    return toWorkerState(first, snapshot).state;
  };
  t.is(stateOf('v1', 10_999), 'in_force', 'its report may be on its way');
  t.is(stateOf('v1', 11_000), 'pending');
  t.is(stateOf('v2', 11_000), 'in_force');
  t.is(stateOf(undefined, 11_000), 'in_force', 'it does not report');
  t.is(stateOf('v1', 11_000, { ...worker, instance: undefined }), 'in_force');
});
