// The facts that are remembered of a worker for as long as it is connected.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createWorkerRegistry } from './workers.ts';

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

test('the newest thousand workers whose connections broke are kept, for an hour', (t) => {
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

test('a worker without an instance has come back when one with its node id has, even before it was missed', (t) => {
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

test('an empty instance is none', (t) => {
  const workers = createWorkerRegistry(createManualClock());
  workers.joined(nodeOf('w', ''), '', 'sotw', anything);
  t.is(workers.list()[0]?.instance, undefined);
});

test('only the beginning of a refusal of megabytes is kept', (t) => {
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
