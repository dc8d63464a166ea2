import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRepeatedLog } from './repeated-log.ts';

function create() {
  const log = createRecordedLog();
  const clock = createManualClock();
  return { log, clock, repeated: createRepeatedLog({ log, clock }) };
}

test('a new text is written at once, its repetitions once a second with their number', (t) => {
  const { log, clock, repeated } = create();
  repeated.warning('a');
  for (let index = 0; index < 1000; index++) repeated.warning('a');
  repeated.warning('b');
  t.deepEqual(log.lines.splice(0), ['warning a', 'warning b']);
  clock.advance(1000);
  t.deepEqual(log.lines.splice(0), ['warning a (1000 more in the last second)']);
  repeated.warning('a');
  t.deepEqual(log.lines, []);
  clock.advance(1000);
  t.deepEqual(log.lines.splice(0), ['warning a (1 more in the last second)']);
});

test('a text that has stopped is new again, and no timer is left', (t) => {
  const { log, clock, repeated } = create();
  repeated.warning('a');
  clock.advance(5000);
  t.is(clock.pending, 0);
  repeated.warning('a');
  t.deepEqual(log.lines, ['warning a', 'warning a']);
});

test('texts that never repeat are bounded in number', (t) => {
  const { log, clock, repeated } = create();
  for (let index = 0; index < 1000; index++) repeated.warning(`text ${index}`);
  t.is(log.lines.length, 32);
  clock.advance(1000);
  t.is(log.lines.at(-1), 'warning 968 more warnings of other kinds in the last second');
  t.is(log.lines.length, 33);
});

test('a flush writes what is counted', (t) => {
  const { log, clock, repeated } = create();
  repeated.warning('a');
  repeated.warning('a');
  repeated.flush();
  t.deepEqual(log.lines, ['warning a', 'warning a (1 more in the last second)']);
  t.is(clock.pending, 0);
});
