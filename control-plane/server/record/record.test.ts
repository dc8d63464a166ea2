import test from 'ava';
import { pluck } from '../../../test/support/pluck.ts';
import {
  emptyRecord,
  fitRecord,
  maxChosen,
  openRolloutOf,
  parseRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  toMovedText,
  toRecordText,
  type VerdictOnRecord,
  verdictOf,
  whyTakenBack,
  whyUnreadable,
  withEnd,
  withInForce,
  withoutVerdict,
  withTakenBackOf,
  withVerdict,
} from './record.ts';

const rollout: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 1,
  chosen: ['0123456789ab'],
  whole: [1],
  reason: '',
};
const takenBack: VerdictOnRecord = {
  revision: 'bad',
  content: 'bad content',
  outcome: 'taken_back',
  reason: 'errors',
  by: '',
  atMs: 1,
};
const old = { revision: 'old', content: 'old content' };
const record: RolloutRecord = {
  rollout,
  inForce: [old],
  verdicts: [takenBack],
  outcomes: [],
  leader: { id: 'process', plane: 'plane', name: 'host:8090', hasLeft: false },
  after: 'another',
  beat: 7,
};
const end = { reason: 'errors 9 %', by: 'token ops', atMs: 5 };
const numbered = (count: number) => Array.from({ length: count }, (_, index) => index);

test('a record is read as it was written', (t) => {
  for (const each of [emptyRecord, record])
    t.deepEqual(parseRecord(toRecordText(each)), { ok: true, record: each });
});

const text = toRecordText(record);
const changed = (change: object) => JSON.stringify({ ...JSON.parse(text), ...change });
const unreadable: readonly (readonly [string, string, string])[] = [
  ['of a newer version', changed({ format: 4 }), 'it is of a newer version (format 4)'],
  ['of a much newer version', '{"format":17}', 'it is of a newer version (format 17)'],
  ['that has moved', toMovedText('ConfigMap a/b'), 'it has moved to ConfigMap a/b'],
  ['cut', text.slice(0, -1), 'it is cut or damaged'],
  ['empty', '', 'it is cut or damaged'],
  ['written by hand', '{"outcome":"in_force"}', 'it is not a record of a rollout'],
  ['no object', '[]', 'it is not a record of a rollout'],
  ['null', 'null', 'it is not a record of a rollout'],
  ['of an unknown older format', '{"format":1}', 'it is of an older version (format 1)'],
  ['of a format that is no number', '{"format":"9"}', 'it is not a record of a rollout'],
  [
    'with a step below 0',
    changed({ rollout: { ...rollout, step: -1 } }),
    'it is not a record of a rollout',
  ],
  [
    'with an outcome of its own',
    changed({ rollout: { ...rollout, outcome: 'fine' } }),
    'it is not a record of a rollout',
  ],
  ['without verdicts', changed({ verdicts: undefined }), 'it is not a record of a rollout'],
];
for (const [what, given, problem] of unreadable) {
  test(`a record that is ${what} is refused by name`, (t) => {
    t.like(parseRecord(given), { ok: false, problem });
  });
}

const long = '\u{1F6A8}\u0007'.repeat(6_000);
const many = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);
/** Large records, as rollouts over many node groups and callers with long texts make them. */
const large: readonly (readonly [string, Partial<RolloutRecord>])[] = [
  ['a reason', { rollout: { ...rollout, reason: long } }],
  ['a list of pools', { rollout: { ...rollout, whole: numbered(1_001) } }],
  ['a list of workers', { rollout: { ...rollout, chosen: many(20_001, '0123456789ab') } }],
  ['a list of what was in force', { inForce: many(200, old) }],
  ['lists of verdicts', { verdicts: many(500, { ...takenBack, reason: long, by: long }) }],
  ['names', { leader: { ...record.leader, name: long }, after: long }],
  [
    'all of them',
    {
      rollout: { ...rollout, reason: long, chosen: many(maxChosen, '0123456789ab') },
      verdicts: many(50, { ...takenBack, reason: long, by: long }),
      takenBack: many(4_000, '0'.repeat(16)),
      outcomes: many(50, {
        revisions: many(5, '0'.repeat(40)),
        content: ''.padEnd(40),
        kind: 'in_force' as const,
        atMs: 1.5e12,
        reason: long,
        by: long,
      }),
    },
  ],
];
for (const [what, given] of large) {
  test(`a record that is written can be read again: ${what} without measure`, (t) => {
    const fitted = fitRecord({ ...record, ...given });
    t.is(whyUnreadable(fitted), undefined);
    t.deepEqual(parseRecord(toRecordText(fitted)), { ok: true, record: fitted });
    t.deepEqual(fitRecord(fitted), fitted);
  });
}

test('a record that could not be read again is refused before it is written', (t) => {
  const chosen = many(40_000, '0123456789ab');
  t.regex(whyUnreadable({ ...record, rollout: { ...rollout, chosen } }) ?? '', /more than 524288$/);
  const id = 'x'.repeat(65);
  t.is(
    whyUnreadable({ ...record, rollout: { ...rollout, id } }),
    'the record could not be read back: it is not a record of a rollout',
  );
});

test('a field of older control planes is accepted', (t) => {
  const reading = parseRecord(changed({ rollout: { ...rollout, base: 'old' } }));
  t.like(reading, { ok: true, record: { ...record, rollout } });
});

test('a verdict is found by revision and by content, the last one first', (t) => {
  const later = { ...takenBack, revision: 'again', outcome: 'approved' as const };
  const now = withVerdict(record, later);
  t.is(verdictOf(record, 'bad', 'any'), takenBack);
  t.is(verdictOf(record, 'any', 'bad content'), takenBack);
  t.is(verdictOf(record, 'any', 'any'), undefined);
  t.deepEqual(now.verdicts, [later], 'the last word about a content');
  const both = withVerdict(now, { ...takenBack, content: 'other content' });
  t.deepEqual(pluck(both.verdicts, 'content'), ['other content', 'bad content']);
  t.is(verdictOf(both, 'again', 'other content')?.content, 'other content');
  t.deepEqual(pluck(withoutVerdict(both, 'bad content').verdicts, 'content'), ['other content']);
});

test('the newest fifty verdicts are kept', (t) => {
  const all = numbered(60).reduce(
    (before, index) => withVerdict(before, { ...takenBack, content: `content-${index}` }),
    emptyRecord,
  );
  t.is(all.verdicts.length, 50);
  t.is(all.verdicts[0]?.content, 'content-59');
  t.is(all.verdicts.at(-1)?.content, 'content-10');
  t.true(parseRecord(toRecordText(all)).ok);
  t.is(whyTakenBack(all, 'content-59'), 'errors');
  t.regex(whyTakenBack(all, 'content-0') ?? '', /no longer on record/, 'it stays taken back');
  const tried = withInForce(all, { revision: 'r', content: 'content-0' }, end);
  t.is(whyTakenBack(tried, 'content-0'), undefined);
  const more = numbered(4_000).map((at) => `${at}`.padStart(16, '0'));
  const full = withVerdict({ ...all, takenBack: more }, { ...takenBack, content: 'content-0' });
  t.is(full.takenBack?.length, 4_000);
  t.is(whyTakenBack(full, more[3_999] ?? ''), undefined, 'the oldest is forgotten');
});

test('the revision in force is the newest of twenty, once each, and no verdict is kept against it', (t) => {
  const first = withInForce(record, { revision: 'again', content: 'bad content' });
  t.deepEqual(first.inForce, [{ revision: 'again', content: 'bad content' }, old]);
  t.deepEqual(first.verdicts, []);
  t.deepEqual(
    withInForce(first, { revision: 'older', content: 'old content' }).inForce,
    [{ revision: 'older', content: 'old content' }],
    'what was undone is no state to go back to',
  );
  const all = numbered(30).reduce(
    (before, index) => withInForce(before, { revision: `${index}`, content: `${index}` }),
    emptyRecord,
  );
  t.is(all.inForce.length, 20);
  t.is(all.inForce[0]?.content, '29');
  t.true(parseRecord(toRecordText(all)).ok);
});

test('an approval is one of what is in force as long as it is, and of what is not yet', (t) => {
  const approved = (content: string) => ({ ...takenBack, content, outcome: 'approved' as const });
  const contentsOf = (given: RolloutRecord) => given.verdicts.map(({ content }) => content);
  const first = [approved('one'), approved('two')].reduce(withVerdict, emptyRecord);
  const one = withInForce(first, { revision: '1', content: 'one' });
  t.deepEqual(contentsOf(one), ['two', 'one'], 'the second one waits for the end of the first');
  const again = withInForce(one, { revision: '1', content: 'one' });
  t.deepEqual(contentsOf(again), ['two', 'one']);
  const two = withInForce(again, { revision: '2', content: 'two' });
  t.deepEqual(contentsOf(two), ['two'], 'what was in force has to be approved again');
});

test('a completed rollout is in force, for all workers', (t) => {
  const ended = withEnd(withVerdict(record, { ...takenBack, content: 'new content' }), 'in_force', {
    ...end,
    reason: '',
  });
  t.deepEqual(ended.rollout, { ...rollout, outcome: 'in_force', chosen: [], whole: [] });
  t.deepEqual(ended.inForce, [{ revision: 'new', content: 'new content' }, old]);
  t.deepEqual(ended.verdicts, [takenBack]);
  t.is(openRolloutOf(ended), undefined);
});

test('a rollout that was taken back has the reason, the person and the time', (t) => {
  const ended = withEnd(record, 'taken_back', end);
  t.deepEqual(ended.rollout, {
    ...rollout,
    outcome: 'taken_back',
    chosen: [],
    whole: [],
    reason: 'errors 9 %',
  });
  t.deepEqual(ended.inForce, [old]);
  t.deepEqual(ended.verdicts, [
    { revision: 'new', content: 'new content', outcome: 'taken_back', ...end, rollout: 'id' },
    takenBack,
  ]);
  const { outcomes } = ended;
  t.deepEqual(outcomes, [
    { revisions: ['new'], content: 'new content', kind: 'taken_back', ...end },
  ]);
  t.deepEqual(
    { ...ended, outcomes: [], rollout, verdicts: record.verdicts },
    { ...record, outcomes: [], takenBack: ['new content'] },
  );
  const other = withInForce(emptyRecord, old, end);
  t.deepEqual(withTakenBackOf(other, ended).takenBack, ['new content'], 'no merge loses it');
  const tried = withInForce(other, { revision: 'new', content: 'new content' }, end);
  t.is(withTakenBackOf(tried, ended), tried, 'it has come into force since');
});

test('without a rollout there is nothing to end', (t) => {
  t.is(withEnd(emptyRecord, 'in_force', end), emptyRecord);
});

test('rules that all workers are given are never on trial, whichever revision has them', (t) => {
  const given = withInForce(record, { revision: 'again', content: rollout.content });
  t.is(given.rollout?.outcome, 'in_force');
  t.deepEqual(given.rollout?.chosen, []);
  t.is(withInForce(record, { revision: 'other', content: 'other' }).rollout, rollout);
});
