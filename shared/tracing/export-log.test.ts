import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createExportLog } from './export-log.ts';

function create() {
  const clock = createManualClock(0);
  const log = createRecordedLog();
  return { clock, lines: log.lines, exportLog: createExportLog({ log, clock }) };
}

test('an outage is one line, and its end another with what was lost', (t) => {
  const { clock, lines, exportLog } = create();
  exportLog.arrived();
  for (let times = 0; times < 5; times++) {
    exportLog.failed('connect ECONNREFUSED');
    clock.advance(100_000);
  }
  exportLog.arrived();
  exportLog.arrived();
  t.deepEqual(lines, [
    'warning Traces do not reach their receiver: connect ECONNREFUSED; decisions are not affected',
    'notice Traces reach their receiver again; 5 batches were lost',
  ]);
});

test('a receiver that comes and goes is complained about once a minute', (t) => {
  const { clock, lines, exportLog } = create();
  for (let second = 0; second < 120; second++) {
    exportLog.failed('refused');
    exportLog.arrived();
    clock.advance(1_000);
  }
  t.is(lines.filter((line) => line.includes('do not reach')).length, 2);
});

test('traces that are left out are told once a minute', (t) => {
  const { clock, lines, exportLog } = create();
  for (let second = 0; second < 120; second++) {
    for (let times = 0; times < 100; times++) exportLog.dropped();
    clock.advance(1_000);
  }
  t.is(lines.length, 2);
});
