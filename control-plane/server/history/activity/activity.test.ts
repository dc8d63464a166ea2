import test from 'ava';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import { createRecordedLog } from '../../../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../../../test/support/rules-folder.ts';
import { type Activity, createActivity, maxEntries, maxTextLength } from './activity.ts';
import { openStoredActivity } from './stored-activity.ts';

const change = {
  who: 'ann',
  address: '10.0.0.7',
  what: 'push a revision',
  requestId: 'r-1',
  before: 'a',
  after: 'b',
  outcome: 'done',
};

test('the newest entry is first, with its time, and the entries of an earlier process follow', (t) => {
  const clock = createManualClock();
  const activity = createActivity(clock);
  activity.note(change);
  clock.advance(1_000);
  activity.note({ ...change, who: 'bob' });
  activity.restore([{ ...change, who: 'eve', atMs: 1 }]);
  t.deepEqual(pluck(activity.read(), 'who'), ['bob', 'ann', 'eve']);
  const [newest, older] = activity.read();
  t.is((newest?.atMs ?? 0) - (older?.atMs ?? 0), 1_000);
});

test('the number of entries is bounded, and so is each text', (t) => {
  const activity = createActivity(createManualClock());
  for (let count = 0; count < maxEntries + 5; count++) {
    activity.note({ ...change, what: `${count} ${'x'.repeat(5_000)}: the reason` });
  }
  const entries = activity.read();
  t.is(entries.length, maxEntries);
  t.true((entries[0]?.what.length ?? 0) <= maxTextLength);
  t.regex(entries[0]?.what ?? '', /^1004 x+ .* x+: the reason$/);
});

test('of a thousand entries with the longest texts, those that fit into the file can be read again', async (t) => {
  const clock = createManualClock();
  const log = createRecordedLog();
  const stateDirectory = createRulesFolder(t).path;
  const open = (activity: Activity) =>
    openStoredActivity({ stateDirectory, store: '/rules', activity, log, clock });
  const activity = createActivity(clock);
  const text = '\u0007'.repeat(maxTextLength);
  for (let count = 0; count < maxEntries; count++) {
    activity.note({ ...change, what: `${count} ${text}`, who: text, outcome: text });
  }
  await open(activity).stop();
  const again = createActivity(clock);
  await open(again).read();
  t.true(again.read().length >= maxEntries / 2);
  t.deepEqual(again.read()[0], activity.read()[0]);
  t.deepEqual(log.lines, []);
});
