import test from 'ava';
import type { MarkKind } from '../../history/last-hour/marks.ts';
import type { Outcomes } from '../../record/outcomes.ts';
import { type HistorySpan, sumSeries, toHistory, withOutcomes } from './traffic.ts';

const slotMs = 5_000;
const nowMs = 1_000_000 * slotMs;

/** `count` slots, the last of which ends `agoSlots` ago. */
function slotsOf(count: number, agoSlots: number, decisions: number) {
  const slots = Array.from({ length: count }, (_, index) => ({
    atMs: nowMs - (agoSlots + count - index) * slotMs,
    decisions,
    overLimit: 1,
    errors: 0,
  }));
  return { slots, marks: [] };
}

const historyOf = (known: Parameters<typeof toHistory>[0], span: HistorySpan = '15m') =>
  toHistory(known, [], span, nowMs);

test('the slots of several control planes are summed by time, up to the time that all have reported', (t) => {
  const others = [slotsOf(3, 2, 5), slotsOf(0, 0, 0)].map((each) => historyOf(each));
  const { slots, until, slotSeconds } = toHistory(slotsOf(3, 1, 10), others, '15m', nowMs);
  t.deepEqual([until, slotSeconds], [new Date(nowMs).toISOString(), 5]);
  t.deepEqual(
    slots.map(({ decisions, overLimit }) => [decisions, overLimit]),
    [
      [5, 1],
      [15, 2],
      [15, 2],
    ],
  );
});

test('a control plane without reports for a long time does not hide the data of the others', (t) => {
  const other = historyOf(slotsOf(3, 60, 5));
  t.is(toHistory(slotsOf(3, 1, 10), [other], '15m', nowMs).slots.length, 3 + 2);
});

test('a quarter of an hour has slots of 5 seconds, an hour those of 20, and both the same rates', (t) => {
  const known = slotsOf(720, 2, 50);
  const quarter = historyOf(known);
  t.is(quarter.slots.length, 178);
  t.true(quarter.slots.every(({ decisions }) => decisions === 50));
  const hour = historyOf(known, '1h');
  t.is(hour.slotSeconds, 20);
  t.is(hour.slots.length, 179);
  t.true(hour.slots.every(({ decisions }) => decisions === 200));
  t.true(hour.slots.every(({ at }) => Date.parse(at) % 20_000 === 0));
});

test('a slot of 20 seconds that is only partly known is omitted', (t) => {
  const slots = slotsOf(12, 0, 50).slots.filter((_, index) => index !== 5);
  t.deepEqual(
    historyOf({ slots, marks: [] }, '1h').slots.map(({ decisions }) => decisions),
    [200, 200],
  );
});

test('an event of one revision that several control planes report is marked once, and each reset is marked', (t) => {
  const mark = (agoMs: number, kind: MarkKind, revision?: string) => ({
    atMs: nowMs - agoMs,
    kind,
    revision,
    text: `${kind} ${agoMs}`,
  });
  const marks = [
    mark(600_000, 'rollout', 'a'),
    mark(400_000, 'taken_back', 'a'),
    mark(9_000, 'reset'),
  ];
  const other = [
    mark(598_000, 'rollout', 'a'),
    mark(100_000, 'rollout', 'a'),
    mark(8_000, 'reset'),
  ];
  const theirs = historyOf({ slots: [], marks: other });
  t.deepEqual(
    toHistory({ slots: [], marks }, [theirs], '15m', nowMs).marks.map(({ text }) => text),
    ['rollout 600000', 'taken_back 400000', 'rollout 100000', 'reset 9000', 'reset 8000'],
  );
});

test('only events within the span are marked', (t) => {
  const marks = [20 * 60_000, 60_000].map((agoMs) => ({
    atMs: nowMs - agoMs,
    kind: 'reset' as const,
    revision: undefined,
    text: `${agoMs}`,
  }));
  const textsOf = (span: HistorySpan) =>
    historyOf({ slots: [], marks }, span).marks.map(({ text }) => text);
  t.deepEqual(textsOf('15m'), ['60000']);
  t.deepEqual(textsOf('1h'), ['1200000', '60000']);
});

test('the series of a rule are summed, and those of other rules stay separate', (t) => {
  const series = (rule: string, hits: number[]) => ({ rule, hits, overLimit: [0], nearLimit: [1] });
  t.deepEqual(sumSeries([series('a', [1, 2]), series('b', [1]), series('a', [4])]), [
    { rule: 'a', hits: [1, 6], overLimit: [0], nearLimit: [2] },
    { rule: 'b', hits: [1], overLimit: [0], nearLimit: [1] },
  ]);
});

test('the mark of a taken-back revision has the actor and the reason, if they are on record', (t) => {
  const text = 'Revision r is taken back';
  const mark = { atMs: 1, kind: 'taken_back', revision: 'r', text } as const;
  const outcome = { revisions: ['r'], content: '', kind: 'taken_back', atMs: 1 } as const;
  const outcomes = [{ ...outcome, revisions: ['r'], reason: 'errors 4 % where it is', by: 'bob' }];
  const textOf = (marks: readonly { text: string }[]) => marks.map(({ text }) => text);
  t.deepEqual(textOf(withOutcomes([mark], outcomes)), [
    'Revision r is taken back by bob: errors 4 % where it is',
  ]);
  const replaced = { ...mark, text: 'Revision r is taken back: revision s has taken its place' };
  for (const same of [{ ...mark, revision: 'other' }, replaced])
    t.deepEqual(withOutcomes([same], outcomes), [same]);
  const refused: Outcomes = [
    {
      ...outcome,
      kind: 'held_back',
      revisions: ['0123456789abcdef'],
      reason: 'it removes most limits',
      by: '',
    },
    { ...outcome, kind: 'invalid', revisions: ['s'], atMs: 0, reason: '', by: '' },
  ];
  t.deepEqual(textOf(withOutcomes([], refused)), [
    'Revision s is invalid',
    'Revision 0123456789ab is held back: it removes most limits',
  ]);
});
