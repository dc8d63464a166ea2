// How often the record is read, renewed and retried, with the test's own text and clock; test/contract/record-keeper.ts
// covers what applies to each kind of shared text.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createMemoryText, createSimulatedText } from '../../../test/support/record-texts.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { sharedTiming } from '../../../test/support/simulated-fleet.ts';
import type { SharedText } from '../store/shared-text.ts';
import {
  emptyRecord,
  noteOutcome,
  parseRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  toRecordText,
  verdictOf,
  withEnd,
  withVerdict,
} from './record.ts';
import { gitTiming, RecordKeeper } from './record-keeper.ts';
import { isVacant, type LeaderTiming, toMemoryState } from './record-state.ts';

const rollout: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 0,
  chosen: [],
  whole: [],
  reason: '',
};
const begin = (record: RolloutRecord): RolloutRecord => ({ ...record, rollout });

function createTwo(timing: LeaderTiming) {
  const clock = createManualClock();
  const log = createRecordedLog();
  const text = createSimulatedText();
  const counts = { reads: 0, swaps: 0 };
  const shared: SharedText = {
    ...text,
    read() {
      counts.reads++;
      return text.read();
    },
    swap(...args) {
      counts.swaps++;
      return text.swap(...args);
    },
  };
  const own = createMemoryText();
  const notified: string[] = [];
  const open = (id: string, of: SharedText = shared) =>
    new RecordKeeper({
      ...{ shared: of, timing, own, steps: '', id, name: id, log, clock },
      onOutcome: ([last]) => notified.push(`${id}: ${last?.revisions} ${last?.kind}`),
    });
  const one = open('one');
  const two = open('two', text);
  return {
    clock,
    log,
    text,
    shared,
    counts,
    own,
    notified,
    one,
    two,
    open,
    /** Lets the keepers tick after this number of milliseconds. */
    async poll(ms: number, isWaiting = true): Promise<void> {
      clock.advance(ms);
      for (const each of [one, two]) {
        each.happen({ kind: 'tick', isWaiting });
        await each.settled();
      }
    },
  };
}

async function startTwo(timing: LeaderTiming = sharedTiming) {
  const two = createTwo(timing);
  await two.one.start();
  await two.two.start();
  return two;
}

const kinds = [
  {
    kind: 'a directory',
    timing: sharedTiming,
    pollMs: 1_000,
    renewMs: 2_000,
    termMs: 8_000,
    noticeMs: 1_000,
  },
  {
    kind: 'Git',
    timing: gitTiming,
    pollMs: 5_000,
    renewMs: 10_000,
    termMs: 30_000,
    noticeMs: 2_000,
  },
] as const;

test('a place whose reads are behind its writes is asked a few times at each poll', async (t) => {
  const { one, shared, text, counts, poll } = await startTwo();
  await one.write(begin);
  text.content = toRecordText(emptyRecord);
  text.writes++;
  // More would be without end.
  shared.swap = async () => ({ kind: ++counts.swaps < 50 ? 'stale' : 'denied', reason: '' });
  await poll(1_000);
  t.true(counts.swaps < 10, `${counts.swaps} swaps`);
  shared.swap = text.swap;
  await poll(2_000);
  t.like(parseRecord(text.content ?? ''), { record: { rollout } }, 'it is written when it can be');
});

for (const { kind, timing, pollMs, renewMs, termMs, noticeMs } of kinds) {
  test(`with ${kind} the record is read ${pollMs} ms after it was read or written, while others may change it`, async (t) => {
    const { counts, poll, one } = await startTwo(timing);
    await poll(pollMs - 1);
    t.is(counts.reads, 1, 'at the start');
    await poll(1);
    t.is(counts.reads, 2);
    await poll(pollMs - 1);
    await one.write((record) => record);
    await poll(pollMs - 1);
    t.is(counts.reads, 2);
    await poll(1);
    t.is(counts.reads, 3);
  });

  test(`with ${kind} a leader gives a sign of life after ${renewMs} ms, and each is counted`, async (t) => {
    const { counts, poll, one } = await startTwo(timing);
    await one.write(begin);
    await poll(renewMs - 1, false);
    t.deepEqual([counts.swaps, one.record.beat], [1, 0]);
    await poll(1, false);
    t.deepEqual([counts.swaps, one.record.beat], [2, 1]);
    await poll(renewMs, false);
    t.deepEqual([counts.swaps, one.record.beat], [3, 2]);
  });

  test(`with ${kind} a leader without a sign of life is followed after ${termMs} ms`, async (t) => {
    for (const isOver of [false, true]) {
      const { clock, one, two } = await startTwo(timing);
      await one.write(begin);
      clock.advance(pollMs);
      two.happen({ kind: 'tick', isWaiting: true });
      await two.settled();
      clock.advance(isOver ? termMs : termMs - 1);
      two.happen({ kind: 'tick', isWaiting: true });
      await two.settled();
      t.is(isVacant(two.state), isOver);
    }
  });

  test(`with ${kind} a newer record that a peer reports is read ${noticeMs} ms after the last poll`, async (t) => {
    const { counts, poll, one } = await startTwo(timing);
    one.happen({ kind: 'noticed', contentId: 'another' });
    await poll(noticeMs - 1, false);
    t.is(counts.reads, 1);
    await poll(1, false);
    t.is(counts.reads, 2);
    await poll(noticeMs, false);
    t.is(counts.reads, 2, 'once');
  });
}

test('after a failure the record is read again after two seconds, whether or not others may change it', async (t) => {
  const { counts, poll, text, one } = await startTwo();
  text.mode = 'away';
  await one.write(begin);
  await poll(1_999, false);
  t.is(counts.reads, 1, 'at the start');
  await poll(1, false);
  t.is(counts.reads, 2);
});

test('while no rollout is open no control plane decides, whoever wrote the record', async (t) => {
  const { poll, one, two } = await startTwo();
  await one.write((record) => ({ ...record, after: 'x' }));
  await poll(1_000);
  t.is(two.record.leader.name, 'one');
  t.true(isVacant(two.state));
});

test('a record keeper closes its text when it is stopped', async (t) => {
  const { open, shared } = createTwo(sharedTiming);
  let isClosed = false;
  const closing = open('closing', {
    ...shared,
    close() {
      isClosed = true;
    },
  });
  await closing.stop();
  t.true(isClosed);
});

test('a write that others are faster than again and again is given up after three', async (t) => {
  const { counts, open, shared } = createTwo(sharedTiming);
  const slow = open('slow', {
    ...shared,
    async swap() {
      counts.swaps++;
      return { kind: 'stale' };
    },
  });
  await slow.start();
  t.false(await slow.write(begin));
  t.is(counts.swaps, 3);
});

test('while the record is being read it is not read again', async (t) => {
  const { clock, counts, one } = await startTwo();
  clock.advance(5_000);
  one.happen({ kind: 'tick', isWaiting: true });
  one.happen({ kind: 'tick', isWaiting: true });
  await one.settled();
  t.is(counts.reads, 2, 'and once at the start');
});

test('a record that is removed, or replaced by an older one, is written again, and that is logged', async (t) => {
  const { log, poll, text, one, two } = await startTwo();
  await one.write((record) => ({ ...record, after: 'x' }));
  const older = text.content;
  await two.write(begin);
  for (const [content, problem] of [
    [undefined, /no longer has a record: the local copy is written again/],
    [older, /has an older record/],
  ] as const) {
    text.content = content;
    text.writes++;
    await poll(1_000);
    const onRecord = parseRecord(text.content ?? '');
    t.deepEqual(onRecord.ok && onRecord.record.rollout, rollout);
    t.regex(log.lines.join(), problem);
    await poll(1_000);
    t.deepEqual([one.record.rollout, two.record.rollout], [rollout, rollout]);
  }
});

// Proof of SECURITY.md: steers and approves rollouts; any other file or text is renamed and reported
test('whoever can write the text of the record moves a rollout on, approves and ends it', async (t) => {
  const { poll, text, one } = await startTwo();
  await one.write(begin);
  const write = async (change: (record: RolloutRecord) => RolloutRecord) => {
    text.content = toRecordText(change(one.record));
    text.writes++;
    await poll(1_000);
  };
  await write((record) => ({ ...record, rollout: { ...rollout, step: 3 } }));
  t.is(one.record.rollout?.step, 3);
  const [revision, outcome] = ['held', 'approved'] as const;
  const approval = { revision, content: revision, outcome, reason: 'x', by: 'x', atMs: 1 };
  await write((record) => withVerdict({ ...record, rollout: null }, approval));
  t.is(one.record.rollout, null);
  t.is(verdictOf(one.record, revision, revision)?.outcome, outcome);
});

test('of what the process before could not write, what was taken back is written at the start', async (t) => {
  for (const isStored of [true, false]) {
    const { text, one, open } = await startTwo();
    await one.write(begin);
    const end = (record: RolloutRecord) =>
      withEnd(record, 'taken_back', { reason: 'a typo', by: 'ops', atMs: 5 });
    text.mode = 'away';
    t.false(await one.write(end));
    if (isStored) one.happen({ kind: 'stored_locally', change: end, isKnownHere: false });
    text.mode = 'fine';
    const again = open('again');
    await again.start();
    const onRecord = parseRecord(text.content ?? '');
    const outcome = onRecord.ok && onRecord.record.rollout?.outcome;
    t.deepEqual(
      [outcome, again.record.rollout?.outcome],
      Array(2).fill(isStored ? 'taken_back' : 'running'),
    );
  }
});

test('a damaged record is set aside, and nothing is written in its place where nothing is known', async (t) => {
  const { text, one, counts } = createTwo(sharedTiming);
  text.content = 'damaged';
  await one.start();
  t.deepEqual([text.content, counts.swaps], [undefined, 0]);
  t.true(toMemoryState(one.state).isForgetful);
});

test('a record of a newer version is not written over in the state directory alone', async (t) => {
  const { clock, log, own } = createTwo(sharedTiming);
  const newer = toRecordText(emptyRecord).replace('"format":3', '"format":9');
  own.save({ text: newer, plane: 'plane' });
  const id = 'alone';
  const alone = new RecordKeeper({
    ...{ shared: undefined, timing: sharedTiming, own, steps: '', id, name: id, log, clock },
  });
  await alone.start();
  clock.advance(5_000);
  t.false(await alone.write(begin));
  t.is((await own.read())?.text, newer);
});

test('a change stored locally is known here and at the next start, and is written with the next change', async (t) => {
  const { one, own, open, text, notified } = await startTwo();
  const outcome = { content: 'a content', atMs: 5, reason: '', by: '' };
  const note = (record: RolloutRecord) =>
    noteOutcome(record, { ...outcome, kind: 'in_force', revision: 'a' });
  one.happen({ kind: 'stored_locally', change: () => undefined, isKnownHere: true });
  t.is(await own.read(), undefined);
  const before = one.contentId;
  one.happen({ kind: 'stored_locally', change: note, isKnownHere: true });
  t.deepEqual(
    [text.writes, one.record.outcomes[0]?.revisions, notified],
    [0, ['a'], ['one: a in_force']],
  );
  t.not(one.contentId, before);
  const again = open('again');
  await again.start();
  t.deepEqual(again.record.outcomes[0]?.revisions, ['a']);
  await one.write(begin);
  const onRecord = parseRecord(text.content ?? '');
  t.deepEqual(onRecord.ok && onRecord.record.outcomes[0]?.revisions, ['a']);
});
