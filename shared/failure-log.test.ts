import test from 'ava';
import { createManualClock } from '../test/support/manual-clock.ts';
import { createFailureLog } from './failure-log.ts';

function setUp() {
  const clock = createManualClock();
  const lines: string[] = [];
  const write = (text: string) => lines.push(text);
  return { clock, lines, failures: createFailureLog({ clock, intervalMs: 5_000, write }) };
}

test('the first failure is said at once, later ones per interval with a count', (t) => {
  const { clock, lines, failures } = setUp();
  failures.failed('gone');
  for (let i = 0; i < 99; i++) {
    clock.advance(100);
    failures.failed('gone');
  }
  t.deepEqual(lines, ['gone', 'gone (and 49 more since this was last said)']);
});

test('a recovery tells how long it took, once, and nothing when nothing was said', (t) => {
  const { clock, failures } = setUp();
  t.is(failures.recover(), undefined);
  failures.failed('gone');
  clock.advance(1_500);
  failures.failed('gone');
  t.deepEqual(failures.recover(), { seconds: 1.5, failures: 2 });
  t.is(failures.recover(), undefined);
});

test('trouble that comes and goes quickly says neither end more than once per interval', (t) => {
  const { clock, lines, failures } = setUp();
  let recoveries = 0;
  for (let i = 0; i < 40; i++) {
    failures.failed('gone');
    if (failures.recover()) recoveries++;
    clock.advance(200);
  }
  t.is(lines.length, 2);
  t.is(recoveries, 2);
});
