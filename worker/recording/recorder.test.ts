// Tests when lines of decisions are written, and how much memory they use until then. Their content is tested in
// test/feature/output/recorded-decisions.test.ts.
import test from 'ava';
import { ask } from '../../test/support/decision-worker.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { codes } from '../decision/message.ts';
import { createRegistry } from '../metrics/registry.ts';
import { createRecordBuffer } from './record-buffer.ts';
import { Recorder } from './recorder.ts';

function setUp(maxPerSecond = 1_000) {
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 10, log });
  const dropped = metrics.counter('ratelimit.recording.dropped');
  const buffer = createRecordBuffer(dropped);
  const recorder = new Recorder({
    options: { rate: 1, maxPerSecond, hashedKeys: [], secret: '' },
    sink: buffer,
    log,
    clock: createManualClock(),
  });
  const decide = (value: string, timeMs: number) => {
    const request = ask(`k=${value}`);
    const sample = recorder.choose(request, timeMs);
    if (sample === undefined) return;
    const status = {
      code: codes.ok,
      currentLimit: undefined,
      limitRemaining: 0,
      secondsUntilReset: undefined,
    };
    recorder.record({ request, matches: [undefined], limited: [] }, sample, {
      ok: true,
      response: {
        overallCode: codes.ok,
        statuses: [status],
        responseHeadersToAdd: [],
        requestHeadersToAdd: [],
        dynamicMetadata: undefined,
      },
    });
  };
  return { buffer, decide, dropped, log };
}

test('lines are made when they are taken, in the order of their answers', (t) => {
  const { buffer, decide } = setUp();
  for (let index = 0; index < 20; index++) decide(`v${index}`, 1_000 + index);
  t.is(buffer.bytes, 0);
  const batch = buffer.drain();
  const values = batch?.text.match(/"value":"v\d+"/g);
  t.deepEqual(
    values,
    Array.from({ length: 20 }, (_, index) => `"value":"v${index}"`),
  );
  t.like(batch, { decisions: 20, fromMs: 1_000, toMs: 1_019, gap: undefined });
  t.is(buffer.drain(), undefined);
});

test('decisions with long texts are not retained until their lines are made', (t) => {
  const { buffer, decide } = setUp();
  decide('x'.repeat(3_000), 1_000);
  t.is(buffer.bytes, 0);
  decide('y'.repeat(3_000), 1_001);
  t.true(buffer.bytes > 6_000);
});

test('at most some twenty decisions wait for their lines, so that they are collected while young', (t) => {
  const { buffer, decide } = setUp();
  for (let index = 0; index < 1_000; index++) decide(`v${index}`, 1_000);
  const written = buffer.bytes;
  const all = buffer.drain()?.bytes ?? 0;
  t.true(written >= all * 0.979, `${written} of ${all} bytes`);
});

test('decisions beyond the bound are counted and are one gap', (t) => {
  const { buffer, decide, dropped, log } = setUp(2);
  for (let index = 0; index < 5; index++) decide('v', 1_000 + index);
  t.like(buffer.drain(), { decisions: 2, gap: { dropped: 3, from: 1_002, time: 1_004 } });
  t.is(dropped.value, 3);
  decide('v', 2_000);
  t.like(buffer.drain(), { decisions: 1, gap: undefined });
  t.is(log.lines.length, 1);
});
