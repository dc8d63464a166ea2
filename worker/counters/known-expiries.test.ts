import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createKnownExpiries } from './known-expiries.ts';

test('a key is known until its lifetime is over or it is forgotten', (t) => {
  const clock = createManualClock();
  const known = createKnownExpiries(clock);
  t.false(known.has('a'));
  known.remember('a', 60);
  known.remember('b', 60);
  t.true(known.has('a'));
  known.forget('a');
  t.false(known.has('a'));
  clock.advance(59_999);
  t.true(known.has('b'));
  clock.advance(1);
  t.false(known.has('b'));
});

test('keys in use stay known while many others pass, which are dropped', (t) => {
  const known = createKnownExpiries(createManualClock());
  known.remember('hot', 1_000);
  for (let i = 0; i < 200_000; i++) {
    known.remember(`key${i}`, 1_000);
    if (i % 1_000 === 0) t.true(known.has('hot'));
  }
  t.true(known.has('key199999'));
  let left = 0;
  for (let i = 0; i < 200_000; i++) if (known.has(`key${i}`)) left++;
  t.true(left < 70_000, String(left));
});

test('long keys are bounded by their length', (t) => {
  const known = createKnownExpiries(createManualClock());
  const toKey = (index: number) => String(index).padStart(100_000, 'x');
  for (let i = 0; i < 200; i++) known.remember(toKey(i), 1_000);
  t.false(known.has(toKey(0)));
  t.true(known.has(toKey(199)));
});
