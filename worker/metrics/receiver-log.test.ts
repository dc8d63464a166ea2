import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createReceiverLog } from './receiver-log.ts';

function setUp() {
  const clock = createManualClock();
  const log = createRecordedLog();
  return { clock, log, receiver: createReceiverLog({ clock, log, receiver: 'r:8125 (tcp)' }) };
}

test('a loss and a return are said once each', (t) => {
  const { log, receiver } = setUp();
  receiver.back();
  receiver.lost('connection refused');
  receiver.lost('connection refused');
  receiver.back();
  receiver.back();
  t.deepEqual(log.lines, [
    'warning Statistics do not reach r:8125 (tcp): connection refused; trying again, decisions are not affected (DISABLE_STATS=true sends none)',
    'notice Statistics reach r:8125 (tcp) again',
  ]);
});

test('a receiver that comes and goes is said to be lost at most once a minute', (t) => {
  const { clock, log, receiver } = setUp();
  for (let second = 0; second < 120; second++) {
    receiver.lost('closed');
    receiver.back();
    clock.advance(1000);
  }
  t.is(log.lines.length, 4);
});
