import test from 'ava';
import { afterPause } from '../../shared/fine-pause.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { measureNode } from './node-gauges.ts';
import { createRegistry } from './registry.ts';

test('an event loop that sleeps is not busy', async (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  t.teardown(measureNode(metrics));
  const busy: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    metrics.prepareReading();
    await new Promise<void>((resolve) => afterPause(100, resolve));
    busy.push(metrics.snapshot().get('ratelimit.node.event_loop_busy_percent') ?? 100);
  }
  // The least, because the process may stand still at any time.
  t.true(Math.min(...busy) < 50, busy.join(', '));
});
