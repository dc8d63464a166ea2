import test from 'ava';
import { runAtOnce } from '../../shared/in-slices.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { createRuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRuleEnds } from './rule-ends.ts';
import type { GoodLoad } from './source.ts';

const startMs = Date.parse('2026-11-24T17:00:00Z');
const hourMs = 3_600_000;

function setUp(...ends: string[]) {
  const clock = createManualClock(startMs);
  const log = createRecordedLog();
  const yaml = [
    'domain: shop',
    'descriptors:',
    '  - {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}',
    ...ends.map(
      (end, at) => `  - {key: user, value: u${at}, until: ${end}, rate_limit: {unlimited: true}}`,
    ),
  ].join('\n');
  const { document } = parseRuleDocument(yaml, 'shop.yaml');
  const documents = document ? [document] : [];
  const builder = createRuleSetBuilder({ mergeDomains: false, sanitizeMetricDots: false });
  const built = runAtOnce(builder.build(documents, startMs));
  if (!built.ok) throw new Error('the rules are wrong');
  const { ruleSet } = built;
  const changes: GoodLoad[] = [];
  let notified = Promise.withResolvers<void>();
  const ruleEnds = createRuleEnds({
    builder,
    onChange(load) {
      changes.push(load);
      notified.resolve();
    },
    log,
    clock,
  });
  const load: GoodLoad = { ok: true, ruleSet, documents, atMs: startMs, warnings: [], origin: 'x' };
  return {
    clock,
    log,
    changes,
    ruleEnds,
    load,
    nextChange: async () => {
      await notified.promise;
      notified = Promise.withResolvers();
    },
  };
}

/** The user whose limit is lifted. */
function liftedIn(load: GoodLoad | undefined): string {
  const rules = load?.ruleSet.domains.get('shop');
  return ['u0', 'u1']
    .filter((value) => rules?.match([{ key: 'user', value }])?.limit.unlimited)
    .join();
}

test('rules are replaced at each end, and not before', async (t) => {
  const { clock, changes, ruleEnds, load, log, nextChange } = setUp(
    '2026-11-24T18:00:00Z',
    '2026-11-24T19:00:00Z',
  );
  ruleEnds.follow(load);
  t.is(liftedIn(load), 'u0,u1');
  clock.advance(hourMs - 1);
  t.deepEqual(changes, []);
  clock.advance(1);
  await nextChange();
  t.is(liftedIn(changes[0]), 'u1');
  t.is(changes[0]?.documents, load.documents);
  clock.advance(hourMs);
  await nextChange();
  t.is(liftedIn(changes[1]), '');
  t.deepEqual(log.lines, [
    'notice 1 rule ended: requests now match the rules without it',
    'notice 1 rule ended: requests now match the rules without it',
  ]);
});

test('one timer waits, for seconds at most, and none if no rule ends', (t) => {
  const { clock, ruleEnds, load } = setUp('2027-11-20T00:00:00Z');
  const waits: number[] = [];
  const { after } = clock;
  clock.after = (delayMs, run) => {
    waits.push(delayMs);
    return after(delayMs, run);
  };
  ruleEnds.follow(load);
  ruleEnds.follow(load);
  t.is(clock.pending, 1);
  clock.advance(60_000);
  t.is(clock.pending, 1);
  t.true(waits.every((ms) => ms <= 5_000));
  ruleEnds.close();
  t.is(clock.pending, 0);
  const plain = setUp();
  plain.ruleEnds.follow(plain.load);
  t.is(plain.clock.pending, 0);
});

test('setting the clock forward ends rules, and setting it back restores them', async (t) => {
  const { clock, changes, ruleEnds, load, log, nextChange } = setUp('2026-11-24T18:00:00Z');
  ruleEnds.follow(load);
  clock.setWall(startMs + 2 * hourMs);
  clock.advance(5_000);
  await nextChange();
  t.is(liftedIn(changes[0]), '');
  clock.setWall(startMs);
  clock.advance(5_000);
  await nextChange();
  t.is(liftedIn(changes[1]), 'u0');
  t.is(log.lines[1], 'notice The clock was set back: 1 rule that had ended is in force again');
});

test('a rule that ends between the load and its use ends at once', async (t) => {
  const { clock, changes, ruleEnds, load, nextChange } = setUp('2026-11-24T18:00:00Z');
  clock.advance(hourMs);
  ruleEnds.follow(load);
  await nextChange();
  t.is(liftedIn(changes[0]), '');
});

test('a load that arrives while earlier rules are rebuilt is not replaced by them', async (t) => {
  const { clock, changes, ruleEnds, load } = setUp('2026-11-24T18:00:00Z');
  ruleEnds.follow(load);
  clock.advance(hourMs);
  const later = setUp();
  ruleEnds.follow({ ...later.load, atMs: clock.wallMs() });
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(changes, []);
});
