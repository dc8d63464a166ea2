import test from 'ava';
import type { AskedJson, StatusJson } from './status-report.ts';
import { type Answer, judgeAnswers } from './verdict.ts';

const newest = '2'.repeat(40);
const older = '1'.repeat(40);

function answerOf(url: string, change: object = {}): Answer {
  const status = {
    verdict: 'in_force',
    text: 'as it is',
    asked: null,
    newest: { id: newest, valid: true, problems: [] },
    inForce: { id: newest, content: 'two' },
    rollout: null,
    settled: true,
    controlPlanes: [],
    workers: { connected: 2 },
    ...change,
  };
  return { url, status: status as unknown as StatusJson };
}

const a = (change?: object) => answerOf('http://a', change);
const b = (change?: object) => answerOf('http://b', change);
const silent: Answer = { url: 'http://b', error: 'the admin API at http://b cannot be reached' };
const nobody = { verdict: 'no_workers', workers: { connected: 0 } };
const keepsOlder = { inForce: { id: older, content: 'one' } };
const takenBack = {
  ...keepsOlder,
  verdict: 'taken_back',
  text: 'it was taken back',
  newest: { id: newest, valid: false, problems: [] },
};
const heldBack = { ...takenBack, verdict: 'held_back', text: 'it is held back' };
const rolledOut = {
  ...keepsOlder,
  verdict: 'pending',
  text: 'it is rolled out',
  rollout: { revision: newest },
};
const leading = {
  ...rolledOut,
  text: 'it is rolled out, as the leader knows it',
  rollout: { revision: newest, leader: { name: 'b', isThis: true } },
};
const indivisible = { ...rolledOut, verdict: 'held_back', text: 'it waits for an approval' };
const askedAt = (place: AskedJson['place']) => ({ asked: { id: older, place } });

type Case = [
  title: string,
  answers: readonly Answer[],
  question: { revision?: string; minWorkers?: number; isApproved?: boolean },
  /** `outcome, verdict: text` */
  expected: string,
];

const cases: readonly Case[] = [
  [
    'all workers of one control plane have it',
    [a()],
    {},
    'yes, in_force: revision 222222222222 is in force on all 2 connected workers',
  ],
  [
    'no workers are connected',
    [a(nobody)],
    {},
    'pending, no_workers: revision 222222222222 is served, but no workers are connected',
  ],
  [
    'no workers are connected, and none have to be',
    [a(nobody)],
    { minWorkers: 0 },
    'yes, no_workers: revision 222222222222 is served, but no workers are connected',
  ],
  [
    'fewer workers are connected than have to be',
    [a()],
    { minWorkers: 3 },
    'pending, pending: revision 222222222222 is in force on all 2 connected workers, of at least 3',
  ],
  [
    'workers of several control planes are counted together',
    [a(), b(nobody)],
    { minWorkers: 2 },
    'yes, in_force: revision 222222222222 is in force on all 2 connected workers',
  ],
  [
    'one of several is not done',
    [a(), b({ verdict: 'pending', text: 'it is on its way' })],
    {},
    'pending, pending: http://b: it is on its way',
  ],
  [
    'one of several does not answer',
    [a(), silent],
    {},
    'pending, not_known: not known: the admin API at http://b cannot be reached',
  ],
  [
    'one of several does not answer, and a rollout stands still',
    [silent, a({ verdict: 'pending', text: 'it stands still' })],
    {},
    'pending, not_known: not known: the admin API at http://b cannot be reached; http://a: it stands still',
  ],
  [
    'one of several does not answer, and another says that the newest is invalid',
    [silent, a({ verdict: 'invalid' })],
    {},
    'refused, invalid: http://a: as it is',
  ],
  [
    'control planes have different newest revisions',
    [a(), b({ newest: { id: older, problems: [] } })],
    {},
    'pending, pending: the control planes differ about the newest revision: 222222222222 at http://a, 111111111111 at http://b',
  ],
  [
    'control planes have different newest revisions, and one of these is invalid',
    [
      a({ verdict: 'invalid', text: 'shop.yaml:4:24: unknown unit' }),
      b({ newest: { id: older, problems: [] } }),
    ],
    {},
    'pending, pending: the control planes differ about the newest revision: 222222222222 at http://a, 111111111111 at http://b; http://a: shop.yaml:4:24: unknown unit',
  ],
  [
    'the revision was superseded by one that has it',
    [a(askedAt('superseded'))],
    { revision: older.slice(0, 8) },
    'yes, in_force: revision 11111111 was superseded by 222222222222, which is in force on all 2 connected workers',
  ],
  [
    'the revision was superseded by one that has it and is not in force yet',
    [a({ ...askedAt('superseded'), verdict: 'pending' })],
    { revision: older.slice(0, 8) },
    'pending, pending: revision 11111111 was superseded: as it is',
  ],
  [
    'the newest was not made from the revision',
    [a(askedAt('apart'))],
    { revision: older.slice(0, 8) },
    'pending, pending: revision 11111111 is not the newest, which was not made from it: as it is',
  ],
  [
    'there is no such revision',
    [a(askedAt('missing'))],
    { revision: 'abcdef' },
    'no_such_revision, no_such_revision: no such revision: abcdef',
  ],
  [
    'only one of several has the revision',
    [a(askedAt('missing')), b(askedAt('superseded'))],
    { revision: 'abcdef' },
    'pending, pending: http://a: there is no revision abcdef: as it is',
  ],
  [
    'an invalid newest says nothing of a revision that the store has not been seen to have',
    [a({ ...askedAt('not_known'), verdict: 'invalid' })],
    { revision: 'abcdef' },
    'pending, pending: revision abcdef is not known yet: as it is',
  ],
  [
    'control planes that know the same newest revision have different ones in force',
    [a(), b(keepsOlder)],
    {},
    'pending, pending: the control planes serve different revisions: 222222222222 at http://a, 111111111111 at http://b',
  ],
  [
    'one has a revision on trial that is in force at another',
    [a(rolledOut), b()],
    {},
    'pending, pending: the control planes serve different revisions: 111111111111 with 222222222222 on trial at http://a, 222222222222 at http://b',
  ],
  [
    'one has nothing in force',
    [a(), b({ inForce: null })],
    {},
    'pending, pending: the control planes serve different revisions: 222222222222 at http://a, nothing at http://b',
  ],
  [
    'the end of a rollout is on its way to another control plane',
    [a({ settled: false }), b(rolledOut)],
    {},
    'pending, pending: http://b: it is rolled out',
  ],
  [
    'the control plane that leads a rollout speaks for all',
    [a(rolledOut), b(leading)],
    {},
    'pending, pending: it is rolled out, as the leader knows it',
  ],
  ['all say the same', [a(takenBack), b(takenBack)], {}, 'refused, taken_back: it was taken back'],
  [
    'control planes make different rules of one revision',
    [a(), b({ inForce: { id: newest, content: 'other' } })],
    {},
    'pending, pending: the control planes serve different rules of revision 222222222222, because their settings or versions differ: http://a, http://b',
  ],
  [
    'revisions of the same content are in force',
    [
      a({ inForce: { id: older, content: 'one' } }),
      b({ inForce: { id: '3'.repeat(40), content: 'one' } }),
    ],
    {},
    'yes, in_force: revision 222222222222 is in force on all 4 connected workers',
  ],
  [
    'one has taken back what another one serves',
    [a(), b(takenBack)],
    {},
    'refused, taken_back: http://b: it was taken back; the control planes serve different revisions: 222222222222 at http://a, 111111111111 at http://b',
  ],
  [
    'two of three that answer differ',
    [a(), silent, answerOf('http://c', keepsOlder)],
    {},
    'pending, not_known: not known: the admin API at http://b cannot be reached; the control planes serve different revisions: 222222222222 at http://a, 111111111111 at http://c',
  ],
  [
    'a revision was approved at one control plane, and another one is about to follow',
    [a({ settled: false }), b(heldBack)],
    {},
    'pending, pending: http://b: it is held back',
  ],
  [
    'a revision is held back at all of them',
    [a(heldBack), b(heldBack)],
    {},
    'refused, held_back: it is held back',
  ],
  [
    'the leader says that no share of the workers can be made',
    [a(rolledOut), b(indivisible)],
    {},
    'refused, held_back: http://b: it waits for an approval',
  ],
  [
    'the leader has not heard yet that it was approved',
    [a(rolledOut), b(indivisible)],
    { isApproved: true },
    'pending, pending: http://a: it is rolled out',
  ],
];

for (const [title, answers, { revision, minWorkers = 1, isApproved = false }, expected] of cases) {
  test(`the verdict when ${title}`, (t) => {
    const { outcome, verdict, text } = judgeAnswers(answers, { revision, minWorkers, isApproved });
    t.is(`${outcome}, ${verdict}: ${text}`, expected);
  });
}
