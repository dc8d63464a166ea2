// How callers are ended that have begun requests and not finished them.
import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createUnfinishedRequests } from './unfinished-requests.ts';

function start() {
  const clock = createManualClock();
  const requests = createUnfinishedRequests({ clock, maxBytes: 100, timeoutMs: 30_000 });
  const ended: string[] = [];
  return {
    clock,
    ended,
    /** A stream that gives up its bytes when it is ended, as calls do. */
    open(name: string) {
      const request = requests.open((reason) => {
        ended.push(`${name}: ${reason}`);
        request.holds(0, false);
      });
      return request;
    },
  };
}

const tooMuch = 'unfinished requests hold too many bytes, and this one is the oldest';

test('beyond the total those that were begun first are ended, however little comes of them', (t) => {
  const { ended, open } = start();
  const [first, second, third] = [open('first'), open('second'), open('third')];
  first.holds(40, false);
  second.holds(40, false);
  third.holds(20, false);
  t.deepEqual(ended, []);
  first.holds(41, false);
  t.deepEqual(ended, [`first: ${tooMuch}`]);
  third.holds(61, false);
  t.deepEqual(ended, [`first: ${tooMuch}`, `second: ${tooMuch}`]);
});

test('a completed request makes the next one of its stream the youngest', (t) => {
  const { ended, open } = start();
  const [first, second] = [open('first'), open('second')];
  first.holds(40, false);
  second.holds(40, false);
  first.holds(40, true);
  first.holds(61, false);
  t.deepEqual(ended, [`second: ${tooMuch}`]);
});

test('a request that is not complete in time is ended, and a stream without one never', (t) => {
  const { clock, ended, open } = start();
  const [slow, idle] = [open('slow'), open('idle')];
  idle.holds(10, false);
  clock.advance(29_000);
  idle.holds(0, true);
  slow.holds(10, false);
  for (let bytes = 11; bytes < 40; bytes++) {
    clock.advance(1000);
    slow.holds(bytes, false);
  }
  t.deepEqual(ended, []);
  clock.advance(1000);
  t.deepEqual(ended, ['slow: a request was not complete after 30 s']);
  t.is(clock.pending, 0);
});
