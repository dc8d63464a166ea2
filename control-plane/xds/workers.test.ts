// What is remembered of a worker for as long as it is connected.
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

test('of a refusal of megabytes the beginning is kept, and no more', (t) => {
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
