import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createProcessLog } from './process-log.ts';

test('until it serves, the process that logs for all logs what a single process would', (t) => {
  const recorded = createRecordedLog();
  const log = createProcessLog(recorded, { number: 1, logsForAll: true });
  log.notice('Listening');
  log.error('cannot reach the store');
  log.noteServing();
  log.warning('lost the store');
  t.deepEqual(recorded.lines, [
    'notice Listening',
    'error cannot reach the store',
    'warning process 1: lost the store',
  ]);
});

test('until they serve, the others only repeat it at more detailed levels', (t) => {
  const recorded = createRecordedLog();
  const log = createProcessLog(recorded, { number: 2, logsForAll: false });
  log.notice('Listening');
  log.error('cannot reach the store');
  log.noteServing();
  log.warning('lost the store');
  t.deepEqual(recorded.lines, [
    'info process 2: Listening',
    'error process 2: cannot reach the store',
    'warning process 2: lost the store',
  ]);
});
