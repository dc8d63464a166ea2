// One line per event, and no storms.
import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createEventLog } from './event-log.ts';

test('the first of a kind is written at once, the others as one line with their number', (t) => {
  const log = createRecordedLog();
  const clock = createManualClock();
  const events = createEventLog({ log, clock });
  for (let at = 0; at < 100; at++) events.note('warning', 'nack', `refusal ${at}`);
  events.note('info', 'connected', 'alone');
  t.deepEqual(log.lines, ['warning refusal 0', 'info alone']);
  clock.advance(5_000);
  t.deepEqual(log.lines.slice(2), ['warning refusal 99 (and 98 more like it)']);
  events.note('warning', 'nack', 'later');
  t.is(log.lines.at(-1), 'warning later');
  events.flush();
  t.is(log.lines.length, 4);
  t.is(clock.pending, 0);
});

test('two of a kind are two lines', (t) => {
  const log = createRecordedLog();
  const events = createEventLog({ log, clock: createManualClock() });
  events.note('info', 'left', 'one');
  events.note('info', 'left', 'two');
  events.flush();
  t.deepEqual(log.lines, ['info one', 'info two']);
});
