// The contract of who decides on a rollout, run over each kind of shared text, with time that the test turns.
import type { ExecutionContext, TestFn } from 'ava';
import {
  createLeadership,
  type Leadership,
  type LeaseTiming,
} from '../../control-plane/rollout/leader.ts';
import { openOwnText } from '../../control-plane/rollout/own-text.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { createRulesFolder } from '../support/rules-folder.ts';
import type { SharedTextKind, SharedTextPlace } from './shared-text.ts';

const timing: LeaseTiming = { poll: 1_000, renew: 2_000, lease: 8_000 };
const begin = {
  id: 'one',
  revision: 'a'.repeat(40),
  base: 'b'.repeat(40),
  outcome: 'running',
  step: 0,
  limits: [],
  reason: '',
  after: '',
} as const;

export function testLeadership(test: TestFn, { name, prepare }: SharedTextKind): void {
  function openFleet(t: ExecutionContext, place: SharedTextPlace) {
    const clock = createManualClock();
    const log = createRecordedLog();
    const { path } = createRulesFolder(t);
    const all: Leadership[] = [];
    return {
      log,
      async join(id: string, text = place.open()): Promise<Leadership> {
        const ownText = openOwnText(`${path}/${id}`, 'a store', log);
        const shared = { text, timing };
        const leadership = createLeadership({ shared, ownText, id, name: id, log, clock });
        t.teardown(leadership.stop);
        await leadership.start();
        all.push(leadership);
        return leadership;
      },
      /** Those that are not killed look once a second. */
      async pass(seconds: number, killed: readonly Leadership[] = []): Promise<void> {
        for (let second = 0; second < seconds; second++) {
          clock.advance(1_000);
          for (const each of all) if (!killed.includes(each)) each.tend(true);
          await Promise.all(all.map((each) => each.settled()));
        }
      },
    };
  }

  test(`${name}: of two that begin at once one leads, and the other one follows`, async (t) => {
    const fleet = openFleet(t, prepare(t));
    const two = [await fleet.join('one'), await fleet.join('two')];
    t.true(two.every(({ isVacant, leads }) => isVacant && !leads));
    const done = await Promise.all(two.map((each) => each.propose(begin)));
    t.is(done.filter(Boolean).length, 1);
    await fleet.pass(3);
    t.is(two.filter(({ leads }) => leads).length, 1);
    t.deepEqual(two[0]?.record, two[1]?.record);
    t.is(two[0]?.contentId, two[1]?.contentId);
    t.true(two.every(({ isVacant }) => !isVacant));
  });

  test(`${name}: a leader that gives signs of life keeps its lead, and one that stops loses it`, async (t) => {
    const fleet = openFleet(t, prepare(t));
    const one = await fleet.join('one');
    const two = await fleet.join('two');
    t.true(await one.propose(begin));
    await fleet.pass(20);
    t.true(one.leads);
    t.false(two.isVacant);
    await fleet.pass(6, [one]);
    t.false(two.isVacant, 'the lease has not run out');
    await fleet.pass(6, [one]);
    t.true(two.isVacant);
    t.true(await two.propose({ ...begin, step: 1, limits: [0.5], after: 'one' }));
    t.true(two.leads);
    // It only stood still, and learns at its next try that it does not lead any more.
    t.true(one.leads);
    t.false(await one.propose({ ...begin, outcome: 'in_force' }));
    t.false(one.leads);
    t.like(one.record, { outcome: 'running', step: 1, limits: [0.5], after: 'one' });
    await fleet.pass(20);
    t.true(two.leads);
    t.false(one.isVacant);
  });

  test(`${name}: what is proposed upon an old record is not written`, async (t) => {
    const fleet = openFleet(t, prepare(t));
    const one = await fleet.join('one');
    const two = await fleet.join('two');
    await one.propose(begin);
    await fleet.pass(2);
    t.true(await two.propose({ ...begin, outcome: 'paused', reason: 'lunch' }));
    t.false(await one.propose({ ...begin, step: 1 }));
    t.like(one.record, { outcome: 'paused', reason: 'lunch' });
    t.true(two.leads);
  });

  test(`${name}: nothing is read or written without a rollout`, async (t) => {
    const text = prepare(t).open();
    let calls = 0;
    const counted = {
      ...text,
      read: () => {
        calls++;
        return text.read();
      },
      swap: (before: string | undefined, given: string) => {
        calls++;
        return text.swap(before, given);
      },
    };
    const fleet = openFleet(t, prepare(t));
    const one = await fleet.join('one', counted);
    t.is(calls, 1, 'the start reads');
    await fleet.pass(5);
    const during = calls;
    t.true(during > 1);
    one.tend(false);
    await one.settled();
    t.is(calls, during);
  });

  test(`${name}: where nothing may be written, that is said once, and each goes on by itself`, async (t) => {
    const place = prepare(t);
    const fleet = openFleet(t, place);
    const one = await fleet.join('one', place.openReadOnly());
    for (let again = 0; again < 2; again++) {
      t.false(await one.propose(begin));
      t.true(one.isShared, 'it may have been a passing refusal');
      t.regex(one.trouble ?? '', /cannot be written/);
      await fleet.pass(3);
    }
    t.true(await one.propose(begin));
    t.false(one.isShared);
    t.true(one.leads);
    t.is(one.trouble, undefined);
    const said = fleet.log.lines.filter((line) => line.includes('takes no writes'));
    t.is(said.length, 1, fleet.log.lines.join('\n'));
    t.regex(said[0] ?? '', /rolls out to its own workers by itself/);
  });

  test(`${name}: what is no record is said, and nobody decides by it`, async (t) => {
    const place = prepare(t);
    const fleet = openFleet(t, place);
    const text = place.open();
    await text.swap(undefined, JSON.stringify({ ...begin, outcome: 'in_force' }));
    const one = await fleet.join('one');
    await fleet.pass(20);
    t.is(one.record, undefined);
    t.false(one.isVacant);
    t.regex(one.trouble ?? '', /it is not the record of a rollout of this version: remove it/);
    t.false(await one.propose(begin));
    await text.swap((await text.read())?.version, 'x'.repeat(65 * 1024));
    await fleet.pass(20);
    t.is(one.record, undefined);
    t.true(one.trouble !== undefined && one.trouble.length < 1_000);
  });

  test(`${name}: while the place cannot be reached nobody takes over, and it is said once`, async (t) => {
    const place = prepare(t);
    const fleet = openFleet(t, place);
    const one = await fleet.join('one');
    const two = await fleet.join('two');
    await one.propose(begin);
    await fleet.pass(2);
    place.hide();
    await fleet.pass(30);
    t.true(one.leads);
    t.false(two.isVacant);
    t.false(await one.propose({ ...begin, step: 1 }));
    t.regex(one.trouble ?? '', /cannot be written/);
    t.is(fleet.log.lines.length, 2, fleet.log.lines.join('\n'));
  });
}
