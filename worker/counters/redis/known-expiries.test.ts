import test from 'ava';
import { createKnownExpiries } from './known-expiries.ts';

test('a key is known until its time is over or it is forgotten', (t) => {
  const known = createKnownExpiries();
  t.false(known.has('a', 0));
  known.remember('a', 60_000);
  known.remember('b', 60_000);
  t.true(known.has('a', 0));
  known.forget('a');
  t.false(known.has('a', 0));
  t.true(known.has('b', 59_999));
  t.false(known.has('b', 60_000));
  known.remember('b', 90_000);
  t.true(known.has('b', 60_000));
});

test('as many keys as a busy worker has are known at once', (t) => {
  const known = createKnownExpiries();
  const total = 200_000;
  for (let i = 0; i < total; i++) known.remember(`key${i}`, 60_000);
  let forgotten = 0;
  for (let i = 0; i < total; i++) if (!known.has(`key${i}`, 0)) forgotten++;
  t.true(forgotten < total / 100, String(forgotten));
});

test('keys are told apart', (t) => {
  const known = createKnownExpiries();
  for (let i = 0; i < 200_000; i++) known.remember(`key${i}`, 60_000);
  let mistaken = 0;
  for (let i = 0; i < 200_000; i++) if (known.has(`kez${i}`, 0)) mistaken++;
  t.is(mistaken, 0);
});

test('keys in use stay known while many others pass, which are forgotten', (t) => {
  const known = createKnownExpiries();
  const total = 1_500_000;
  known.remember('hot', 60_000);
  for (let i = 0; i < total; i++) {
    known.remember(`key${i}`, 60_000);
    if (i % 1_000 === 0 && !known.has('hot', 0)) t.fail(`forgotten at ${i}`);
  }
  t.true(known.has(`key${total - 1}`, 0));
  let left = 0;
  for (let i = 0; i < total; i++) if (known.has(`key${i}`, 0)) left++;
  t.true(left <= 524_288, String(left));
});
