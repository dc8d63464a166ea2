import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { afterPause } from '../fine-pause.ts';
import { measureNode, toBusyPercent } from './node-gauges.ts';
import { createRegistry } from './registry.ts';

function setUp() {
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  const clock = createManualClock();
  measureNode({ metrics, clock });
  const read = () => {
    const values = metrics.snapshot();
    const of = (name: string) => values.get(`ratelimit.node.event_loop_${name}`);
    return { max: of('delay_max_us'), p99: of('delay_p99_us') };
  };
  return { clock, read };
}

// Serial, so that the process does nothing else meanwhile.
test.serial('an event loop that sleeps is not busy', async (t) => {
  const busy: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
    const stop = measureNode({ metrics, clock: systemClock });
    await new Promise<void>((resolve) => afterPause(100, resolve));
    await new Promise((resolve) => systemClock.after(1, () => resolve(undefined)));
    busy.push(metrics.snapshot().get('ratelimit.node.event_loop_busy_percent') ?? 100);
    stop();
  }
  // The lowest, because the process may stall at any time.
  t.true(Math.min(...busy) < 50, busy.join(', '));
});

test('an event loop that works is busy', async (t) => {
  const busy: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
    const stop = measureNode({ metrics, clock: systemClock });
    const untilMs = performance.now() + 150;
    while (performance.now() < untilMs);
    await new Promise((resolve) => systemClock.after(1, () => resolve(undefined)));
    busy.push(metrics.snapshot().get('ratelimit.node.event_loop_busy_percent') ?? 0);
    stop();
  }
  // The highest, because the process may stall at any time.
  t.true(Math.max(...busy) > 50, busy.join(', '));
  t.true(Math.max(...busy) <= 100, busy.join(', '));
});

test('the event loop is as busy as its share of the whole time', (t) => {
  t.is(toBusyPercent([]), 0);
  t.is(toBusyPercent([{ busyMs: 0, allMs: 0 }]), 0);
  t.is(
    toBusyPercent([
      { busyMs: 30, allMs: 100 },
      { busyMs: 0, allMs: 20 },
    ]),
    25,
  );
  t.is(toBusyPercent([{ busyMs: 50, allMs: 50 }]), 100);
  t.is(toBusyPercent([{ busyMs: -1, allMs: 50 }]), 0, 'a pause that ended before it was counted');
});

test('the memory and the age of the process are shown', (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  measureNode({ metrics, clock: createManualClock() });
  const before = Math.floor(process.uptime());
  const values = metrics.snapshot();
  const after = Math.floor(process.uptime());
  const of = (name: string) => values.get(`ratelimit.node.${name}`) ?? -1;
  t.true(of('heap_used_bytes') > 0);
  t.true(of('heap_total_bytes') >= of('heap_used_bytes'));
  t.true(of('rss_bytes') > 0);
  t.true(of('external_bytes') > 0);
  t.true(of('uptime_seconds') >= before && of('uptime_seconds') <= after);
});

test('before the first sample the event loop was not late', (t) => {
  t.deepEqual(setUp().read(), { max: 0, p99: 0 });
});

test('each reader of the gauges sees a late event loop, also right after another reader', (t) => {
  const { clock, read } = setUp();
  clock.advance(10_000);
  t.deepEqual(read(), { max: 0, p99: 0 });
  clock.stall(450);
  const late = { max: 400_000, p99: 0 };
  t.deepEqual(read(), late);
  t.deepEqual(read(), late);
  clock.advance(59_000);
  t.deepEqual(read(), late);
});

test('a late event loop is forgotten after a minute', (t) => {
  const { clock, read } = setUp();
  clock.stall(450);
  clock.advance(59_950);
  t.is(read().max, 400_000);
  clock.advance(50);
  t.is(read().max, 0);
});

test('an event loop that was late right after a reading was late', (t) => {
  const { clock, read } = setUp();
  clock.advance(1000);
  read();
  clock.stall(450);
  t.is(read().max, 400_000);
});

test("the p99 of the event loop's delay is exceeded by one sample in a hundred", (t) => {
  const { clock, read } = setUp();
  for (let sample = 1; sample <= 1000; sample++) {
    if (sample % 50 === 0) clock.stall(60);
    else clock.advance(50);
  }
  t.deepEqual(read(), { max: 10_000, p99: 10_000 });
});

test('an event loop that was blocked for longer than a minute was late', (t) => {
  const { clock, read } = setUp();
  clock.stall(90_050);
  t.is(read().max, 90_000_000);
});

test.serial('memory that the system cannot report does not prevent a reading', (t) => {
  const { memoryUsage } = process;
  t.teardown(() => {
    process.memoryUsage = memoryUsage;
  });
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  measureNode({ metrics, clock: createManualClock() });
  const read = () => metrics.snapshot().get('ratelimit.node.rss_bytes');
  const before = read();
  const refuse = () => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  };
  process.memoryUsage = Object.assign(refuse, { rss: refuse });
  t.is(read(), before);
});
