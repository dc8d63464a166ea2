import test from 'ava';
import { createKnownExpiries } from './known-expiries.ts';

test('a key is known until its lifetime ends or it is forgotten', (t) => {
  const known = createKnownExpiries();
  t.false(known.has('a', 60, 0));
  known.remember('a', 60, 0);
  known.remember('b', 60, 0);
  t.true(known.has('a', 60, 0));
  known.forget('a');
  t.false(known.has('a', 60, 0));
  t.true(known.has('b', 60, 59_999));
  t.false(known.has('b', 60, 60_000));
  known.remember('b', 60, 30_000);
  t.true(known.has('b', 60, 60_000));
});

test('a key that is known for a window is known for shorter ones, and not for longer ones', (t) => {
  const known = createKnownExpiries();
  known.remember('k', 3_600, 0);
  t.true(known.has('k', 60, 0));
  t.false(known.has('k', 86_400, 0));
  known.remember('k', 86_400, 1_000);
  t.true(known.has('k', 3_600, 4_000_000), 'for as long as the longest');
  known.remember('century', 3_155_760_000, 0);
  t.true(
    known.has('century', 3_155_760_000, 60_000_000_000),
    'for two years of the process at least',
  );
});

test('with more window lengths than there are numbers, nothing wrong is known', (t) => {
  const known = createKnownExpiries();
  for (let seconds = 1; seconds <= 100; seconds++) known.remember(`k${seconds}`, seconds, 0);
  t.true(known.has('k63', 63, 0));
  t.false(known.has('k63', 64, 0));
  t.false(known.has('k100', 100, 0));
  known.remember('k63', 100, 0);
  t.false(known.has('k63', 63, 0), 'its life in the store may have become shorter');
});

test('as many keys as a busy worker uses are known at the same time', (t) => {
  const known = createKnownExpiries();
  const total = 200_000;
  for (let i = 0; i < total; i++) known.remember(`key${i}`, 60, 0);
  let forgotten = 0;
  for (let i = 0; i < total; i++) if (!known.has(`key${i}`, 60, 0)) forgotten++;
  t.true(forgotten < total / 100, String(forgotten));
});

test('keys are distinguished', (t) => {
  const known = createKnownExpiries();
  for (let i = 0; i < 200_000; i++) known.remember(`key${i}`, 60, 0);
  let mistaken = 0;
  for (let i = 0; i < 200_000; i++) if (known.has(`kez${i}`, 60, 0)) mistaken++;
  t.is(mistaken, 0);
});

test('keys in use stay known while many others are added and forgotten', (t) => {
  const known = createKnownExpiries();
  const total = 1_500_000;
  known.remember('hot', 60, 0);
  for (let i = 0; i < total; i++) {
    known.remember(`key${i}`, 60, 0);
    if (i % 1_000 === 0 && !known.has('hot', 60, 0)) t.fail(`forgotten at ${i}`);
  }
  t.true(known.has(`key${total - 1}`, 60, 0));
  let left = 0;
  for (let i = 0; i < total; i++) if (known.has(`key${i}`, 60, 0)) left++;
  t.true(left <= 524_288, String(left));
});
