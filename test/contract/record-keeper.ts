// The contract of the record that control planes share, and of the leadership based on it, run on each kind of shared
// text, with a manual clock.
import type { ExecutionContext } from 'ava';
import type { OwnText } from '../../control-plane/server/record/own-text.ts';
import {
  parseRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  toRecordText,
  type VerdictOnRecord,
  verdictOf,
  withEnd,
  withInForce,
  withVerdict,
} from '../../control-plane/server/record/record.ts';
import { RecordKeeper } from '../../control-plane/server/record/record-keeper.ts';
import {
  isVacant,
  type LeaderTiming,
  leads,
  toMemoryState,
  toRevisionMemory,
} from '../../control-plane/server/record/record-state.ts';
import type { SharedText } from '../../control-plane/server/store/shared-text.ts';
import { AppError } from '../../shared/errors.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createMemoryText } from '../support/record-texts.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import type { DeclareTest, SharedTextKind, SharedTextTarget } from './shared-text.ts';

const timing: LeaderTiming = { poll: 1_000, renew: 2_000, term: 8_000, readAgain: 1_000 };
const rollout: RolloutOnRecord = {
  id: 'one',
  revision: 'a'.repeat(40),
  content: 'a',
  outcome: 'running',
  step: 0,
  chosen: [],
  whole: [],
  reason: '',
};
const end = { reason: 'errors', by: '', atMs: 1 };
const heldBack: VerdictOnRecord = { ...end, revision: 'z', content: 'z', outcome: 'held_back' };

type Change = (record: RolloutRecord) => RolloutRecord | undefined;
const begin: Change = (record) => ({ ...record, rollout });
const toStep =
  (step: number): Change =>
  (record) => ({ ...record, rollout: record.rollout && { ...record.rollout, step } });
const isInForce =
  (content: string): Change =>
  (record) =>
    withInForce(record, { revision: content, content });
const holdBack: Change = (record) => withVerdict(record, heldBack);

/** The shared text as one control plane accesses it. */
interface Reached extends SharedText {
  mode: 'fine' | 'denied' | 'away';
  reads: number;
  swaps: number;
}

function reach(text: SharedText): Reached {
  const away = () => new AppError('store', 'no route to it');
  const reached: Reached = {
    description: text.description,
    setAside: (version) => text.setAside(version),
    close: () => text.close(),
    mode: 'fine',
    reads: 0,
    swaps: 0,
    async read() {
      reached.reads++;
      if (reached.mode === 'away') throw away();
      return text.read();
    },
    async swap(before, given) {
      reached.swaps++;
      if (reached.mode === 'away') throw away();
      if (reached.mode === 'denied') return { kind: 'denied', reason: 'may only read' };
      return text.swap(before, given);
    },
  };
  return reached;
}

interface Joined {
  readonly keeper: RecordKeeper;
  readonly text: Reached;
  readonly own: OwnText;
}

export function testRecordKeeper(test: DeclareTest, { name, prepare }: SharedTextKind): void {
  function openFleet(t: ExecutionContext, target: SharedTextTarget = prepare(t)) {
    const clock = createManualClock();
    const log = createRecordedLog();
    const all: RecordKeeper[] = [];
    let processes = 0;
    const fleet = {
      clock,
      log,
      target,
      lines: (part: string) => log.lines.filter((line) => line.includes(part)),
      /** `own`: the copy of an earlier process. */
      async join(
        called: string,
        own = createMemoryText(),
        mode: Reached['mode'] = 'fine',
      ): Promise<Joined> {
        const text = reach(target.open());
        text.mode = mode;
        const id = `process-${++processes}`;
        const keeper = new RecordKeeper({
          ...{ shared: text, timing, own, steps: '', id, name: called, log, clock },
        });
        t.teardown(() => keeper.stop());
        await keeper.start();
        all.push(keeper);
        return { keeper, text, own };
      },
      /** From now on it does nothing. */
      kill(keeper: RecordKeeper) {
        all.splice(all.indexOf(keeper), 1);
      },
      /** All poll once a second. */
      async pass(seconds: number): Promise<void> {
        for (let second = 0; second < seconds; second++) {
          clock.advance(1_000);
          for (const each of all) each.happen({ kind: 'tick', isWaiting: true });
          await Promise.all(all.map((each) => each.settled()));
        }
      },
    };
    return fleet;
  }

  test(`${name}: of two that start at once, one leads and the other follows`, async (t) => {
    const fleet = openFleet(t);
    const two = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    t.true(two.every(({ state }) => isVacant(state) && !leads(state)));
    const first: Change = (record) => (record.rollout === null ? begin(record) : undefined);
    const done = await Promise.all(two.map((each) => each.write(first)));
    t.is(done.filter(Boolean).length, 1);
    await fleet.pass(3);
    t.is(two.filter(({ state }) => leads(state)).length, 1);
    t.deepEqual(two[0]?.record.rollout, rollout);
    t.is(two[0]?.contentId, two[1]?.contentId);
    t.true(two.every(({ state }) => !isVacant(state)));
  });

  test(`${name}: a leader that renews its term keeps its lead, and one that stops loses it`, async (t) => {
    const fleet = openFleet(t);
    const [one, two] = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    t.true(await one.write(begin));
    const { contentId } = one;
    await fleet.pass(12);
    t.true(leads(one.state));
    t.true(one.record.beat >= 4);
    t.is(one.contentId, contentId, 'a sign of life changes nothing');
    t.false(isVacant(two.state));
    fleet.kill(one);
    await fleet.pass(6);
    t.false(isVacant(two.state), 'the term has not run out');
    await fleet.pass(3);
    t.true(isVacant(two.state));
    t.true(await two.write(toStep(1)));
    t.true(leads(two.state));
    t.is(two.record.leader.name, 'two');
    // It was only stalled, and learns at its next write that it no longer leads.
    t.true(leads(one.state));
    t.false(
      await one.write((record) => (record.leader.name === 'one' ? toStep(2)(record) : undefined)),
    );
    t.false(leads(one.state));
    t.is(one.record.rollout?.step, 1);
    t.false(isVacant(one.state));
  });

  test(`${name}: concurrent writes based on the same old record are both on record`, async (t) => {
    const fleet = openFleet(t);
    const [one, two] = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    await one.write(begin);
    t.true(await two.write(isInForce('b')));
    t.deepEqual([two.record.rollout, two.record.inForce.length], [rollout, 1]);
    t.false(await one.write((record) => (record.inForce.length === 0 ? begin(record) : undefined)));
    t.deepEqual(one.record, two.record, 'what has become pointless is not written');
  });

  test(`${name}: a leader that hands over is followed at once`, async (t) => {
    const fleet = openFleet(t);
    const [one, two] = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    await one.write(begin);
    await fleet.pass(1);
    t.false(isVacant(two.state));
    await one.handOver();
    t.false(leads(one.state));
    t.true(isVacant(one.state));
    fleet.kill(one);
    await fleet.pass(1);
    t.true(isVacant(two.state));
    t.deepEqual(two.record.rollout, rollout);
  });

  test(`${name}: only a leader hands over, and only a running rollout`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, text } = await fleet.join('one');
    const { keeper: two } = await fleet.join('two');
    await one.write(isInForce('a'));
    const { swaps } = text;
    await one.handOver();
    t.is(text.swaps, swaps);
    await one.write(begin);
    await fleet.pass(1);
    await two.handOver();
    await fleet.pass(1);
    t.true(leads(one.state));
  });

  test(`${name}: a killed control plane leads again at once, and no other one does`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, own } = await fleet.join('one');
    await one.write(begin);
    fleet.kill(one);
    const { keeper: other } = await fleet.join('other');
    t.false(isVacant(other.state));
    const { keeper: again } = await fleet.join('one again', own);
    t.true(isVacant(again.state));
    t.false(leads(again.state));
    t.true(await again.write(toStep(1)));
    t.true(leads(again.state));
    await fleet.pass(2);
    t.is(other.record.leader.plane, one.record.leader.plane);
  });

  test(`${name}: nothing is read or written while no change is awaited`, async (t) => {
    const fleet = openFleet(t);
    const { keeper, text } = await fleet.join('one');
    t.is(text.reads, 1, 'the start reads');
    await keeper.write(begin);
    await keeper.write((record) => withEnd(record, 'in_force', end));
    const { reads, swaps } = text;
    for (let second = 0; second < 5; second++) {
      fleet.clock.advance(1_000);
      keeper.happen({ kind: 'tick', isWaiting: false });
      await keeper.settled();
    }
    t.deepEqual([text.reads, text.swaps], [reads, swaps]);
    await fleet.pass(5);
    t.deepEqual([text.reads, text.swaps], [reads + 5, swaps]);
  });

  test(`${name}: peers that report another record cause one read per interval, and never change this one`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, text } = await fleet.join('one');
    const { keeper: two } = await fleet.join('two');
    await two.write(isInForce('a'));
    async function listen(contentId: string): Promise<number> {
      const { reads } = text;
      for (let turn = 0; turn < 20; turn++) {
        one.happen({ kind: 'noticed', contentId });
        fleet.clock.advance(100);
        one.happen({ kind: 'tick', isWaiting: false });
        await one.settled();
      }
      return text.reads - reads;
    }
    t.is(await listen(two.contentId), 1);
    t.is(one.contentId, two.contentId);
    t.is(await listen(one.contentId), 0);
    t.is(await listen('unknown'), 2);
  });

  test(`${name}: a place without write permission is reported once, no control plane leads, and changes without steps are stored`, async (t) => {
    const target = prepare(t);
    const fleet = openFleet(t, { ...target, open: target.openReadOnly });
    const { keeper: one, text, own } = await fleet.join('one');
    t.false(await one.write(begin));
    t.regex(one.state.error ?? '', /rejects writes from this control plane/);
    const { swaps } = text;
    t.false(await one.write(begin));
    t.is(text.swaps, swaps, 'it does not try again');
    await fleet.pass(3);
    t.is(one.state.error, undefined, 'it can be read');
    t.false(await one.write(begin));
    t.false(leads(one.state));
    t.is(one.record.rollout, null);
    t.true(toMemoryState(one.state).isForgetful, 'no earlier state is known');
    await fleet.pass(3);
    t.true(await one.write(holdBack));
    t.is(fleet.lines('rejects writes').length, 1, fleet.log.lines.join('\n'));
    fleet.kill(one);
    const writable = openFleet(t);
    const { keeper: again } = await writable.join('one again', own);
    t.false(toMemoryState(again.state).isForgetful);
    t.is(verdictOf(again.record, 'z', 'z')?.reason, 'errors');
    t.true(await again.write(begin));
    t.is(again.state.denied, undefined);
    const { keeper: other } = await writable.join('other');
    t.is(verdictOf(other.record, 'z', 'z')?.reason, 'errors');
  });

  test(`${name}: while the place cannot be reached, no control plane takes over, and it is reported once`, async (t) => {
    const fleet = openFleet(t);
    const [one, two] = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    await one.write(begin);
    await fleet.pass(2);
    fleet.target.hide();
    await fleet.pass(15);
    t.true(leads(one.state));
    t.false(isVacant(two.state));
    t.false(await one.write(toStep(1)));
    t.regex(one.state.error ?? '', /cannot be (written|read)/);
    t.is(fleet.log.lines.length, 2, fleet.log.lines.join('\n'));
  });

  test(`${name}: a place that recovers is used again, and its known content is kept`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, text } = await fleet.join('one');
    const { keeper: two } = await fleet.join('two');
    await one.write(begin);
    text.mode = 'away';
    await fleet.pass(2);
    const { reads, swaps } = text;
    await fleet.pass(6);
    t.true(text.reads + text.swaps - reads - swaps <= 3, 'it is not asked all the time');
    t.deepEqual(one.record.rollout, rollout);
    text.mode = 'fine';
    await fleet.pass(3);
    t.is(one.state.error, undefined);
    t.is(fleet.lines('can be reached again').length, 1);
    t.true(leads(one.state));
    t.false(isVacant(two.state));
  });

  test(`${name}: a record that cannot be reached at the start is known from the copy`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, own } = await fleet.join('one');
    await one.write((record) => holdBack(isInForce('a')(record) ?? record));
    fleet.kill(one);
    const { keeper: again } = await fleet.join('one again', own, 'away');
    t.is(toRevisionMemory(again.state).inForce?.content, 'a');
    t.true(again.state.isKnown);
    t.is(verdictOf(again.record, 'z', 'z')?.outcome, 'held_back');
    t.regex(again.state.error ?? '', /cannot be read \(no route to it\)/);
    t.false(isVacant(again.state));
    t.false(await again.write(begin), 'nothing is written before it was read');
  });

  test(`${name}: a deleted record is written again`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, own } = await fleet.join('one');
    await one.write((record) => holdBack(begin(record) ?? record));
    const empty = openFleet(t);
    const { keeper: again } = await empty.join('one', own);
    t.deepEqual(again.record.rollout, rollout);
    t.true(await again.write(toStep(1)));
    const { keeper: other } = await empty.join('other');
    t.is(other.record.rollout?.step, 1);
    t.is(verdictOf(other.record, 'z', 'z')?.outcome, 'held_back');
  });

  test(`${name}: a record of a newer version is refused by name, and no control plane decides or writes by it`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one } = await fleet.join('one');
    await one.write(begin);
    const text = fleet.target.open();
    const found = await text.read();
    const newer = (found?.text ?? '').replace('"format":3', '"format":9');
    t.is((await text.swap(found?.version, newer)).kind, 'written');
    await fleet.pass(10);
    t.deepEqual(one.record.rollout, rollout, 'as known before');
    const problem = /it is of a newer version \(format 9\): run the version that wrote it/;
    t.regex(one.state.error ?? '', problem);
    t.false(isVacant(one.state));
    t.false(await one.write(toStep(1)));
    t.is((await text.read())?.text, newer);
    const { keeper: other } = await fleet.join('other');
    t.is(other.record.rollout, null);
    t.false(isVacant(other.state));
    t.false(await other.write(begin));
    t.regex(other.state.error ?? '', problem);
    t.is(fleet.log.lines.length, 2, fleet.log.lines.join('\n'));
  });

  for (const [what, damage] of [
    ['damaged', (text: string) => text.slice(1)],
    ['written by hand', () => '{"outcome":"in_force"}'],
    ['longer than any record', (text: string) => text.padEnd(600_000)],
  ] as const) {
    test(`${name}: a record that is ${what} is set aside by name, and the known content replaces it`, async (t) => {
      const fleet = openFleet(t);
      const { keeper: one } = await fleet.join('one');
      await one.write(begin);
      const text = fleet.target.open();
      t.is(
        (await text.swap((await text.read())?.version, damage(toRecordText(one.record)))).kind,
        'written',
      );
      await fleet.pass(3);
      t.regex(one.state.aside ?? '', /could not be read \(it is .*\) and is kept as .*unreadable$/);
      t.is(one.state.error, undefined);
      t.deepEqual(one.record.rollout, rollout);
      const { keeper: other } = await fleet.join('other');
      t.deepEqual(other.record.rollout, rollout);
      t.true(await one.write(toStep(1)));
      t.is(fleet.log.lines.length, 1, fleet.log.lines.join('\n'));
    });
  }

  test(`${name}: a record that could not be read again is not written`, async (t) => {
    const fleet = openFleet(t);
    const { keeper: one, text } = await fleet.join('one');
    const reason = 'x'.repeat(100_000);
    t.true(await one.write((record) => ({ ...record, rollout: { ...rollout, reason } })));
    t.true((one.record.rollout?.reason.length ?? 0) < 2_000);
    const chosen = Array(40_000).fill('0123456789ab');
    t.false(await one.write((record) => ({ ...record, rollout: { ...rollout, chosen } })));
    t.regex(one.state.error ?? '', /the record would have \d+ bytes, more than 524288/);
    t.true(parseRecord((await text.read())?.text ?? '').ok);
  });

  test(`${name}: listeners are notified of each change, whoever makes it`, async (t) => {
    const fleet = openFleet(t);
    const [one, two] = [(await fleet.join('one')).keeper, (await fleet.join('two')).keeper];
    const received: (string | undefined)[] = [];
    two.onChange(() => received.push(two.record.inForce[0]?.content));
    await one.write(isInForce('a'));
    await fleet.pass(3);
    await two.write(isInForce('b'));
    t.deepEqual(received, ['a', 'b']);
    const { wasInForce } = toRevisionMemory(two.state);
    t.deepEqual(['a', 'b', 'c'].map(wasInForce), [true, true, false]);
  });
}
