import test from 'ava';
import type { AskedJson, StatusJson } from './status-report.ts';
import { type Answer, judgeAnswers, type Verdict } from './verdict.ts';

const newest = '2'.repeat(40);
const older = '1'.repeat(40);

function answerOf(url: string, change: object = {}): Answer {
  const status = {
    verdict: 'in_force',
    text: 'as it is',
    asked: null,
    newest: { id: newest, problems: [] },
    workers: { connected: 2 },
    ...change,
  };
  return { url, status: status as unknown as StatusJson };
}

const a = (change?: object) => answerOf('http://a', change);
const b = (change?: object) => answerOf('http://b', change);
const silent: Answer = { url: 'http://b', error: 'the admin API at http://b cannot be reached' };
const nobody = { verdict: 'no_workers', workers: { connected: 0 } };
const askedAt = (place: AskedJson['place']) => ({ asked: { id: older, place } });

type Case = [
  title: string,
  answers: readonly Answer[],
  question: { revision?: string; minWorkers?: number },
  expected: [outcome: Verdict['outcome'], verdict: Verdict['verdict'], text: string],
];

const cases: readonly Case[] = [
  [
    'all workers of one control plane have it',
    [a()],
    {},
    ['yes', 'in_force', 'revision 222222222222 is in force on all 2 connected workers'],
  ],
  [
    'no workers are connected',
    [a(nobody)],
    {},
    ['pending', 'no_workers', 'revision 222222222222 is served, but no workers are connected'],
  ],
  [
    'no workers are connected, and none have to be',
    [a(nobody)],
    { minWorkers: 0 },
    ['yes', 'no_workers', 'revision 222222222222 is served, but no workers are connected'],
  ],
  [
    'fewer workers are connected than have to be',
    [a()],
    { minWorkers: 3 },
    [
      'pending',
      'pending',
      'revision 222222222222 is in force on all 2 connected workers, of at least 3',
    ],
  ],
  [
    'workers of several control planes are counted together',
    [a(), b(nobody)],
    { minWorkers: 2 },
    ['yes', 'in_force', 'revision 222222222222 is in force on all 2 connected workers'],
  ],
  [
    'one of several is not done',
    [a(), b({ verdict: 'pending' })],
    {},
    ['pending', 'pending', 'http://b: as it is'],
  ],
  [
    'one of several does not answer',
    [a(), silent],
    {},
    ['pending', 'not_known', 'not known: the admin API at http://b cannot be reached'],
  ],
  [
    'one of several does not answer, and another says that the newest is invalid',
    [silent, a({ verdict: 'invalid' })],
    {},
    ['refused', 'invalid', 'http://a: as it is'],
  ],
  [
    'control planes have different newest revisions',
    [a(), b({ newest: { id: older, problems: [] } })],
    {},
    [
      'pending',
      'pending',
      'the control planes differ about the newest revision: 222222222222 at http://a, 111111111111 at http://b',
    ],
  ],
  [
    'the revision was superseded by one that has it',
    [a(askedAt('superseded'))],
    { revision: older.slice(0, 8) },
    [
      'yes',
      'in_force',
      'revision 11111111 was superseded by 222222222222, which is in force on all 2 connected workers',
    ],
  ],
  [
    'the revision was superseded by one that has it and is not in force yet',
    [a({ ...askedAt('superseded'), verdict: 'pending' })],
    { revision: older.slice(0, 8) },
    ['pending', 'pending', 'revision 11111111 was superseded: as it is'],
  ],
  [
    'the newest was not made from the revision',
    [a(askedAt('apart'))],
    { revision: older.slice(0, 8) },
    [
      'pending',
      'pending',
      'revision 11111111 is not the newest, which was not made from it: as it is',
    ],
  ],
  [
    'there is no such revision',
    [a(askedAt('missing'))],
    { revision: 'abcdef' },
    ['no_such_revision', 'no_such_revision', 'no such revision: abcdef'],
  ],
  [
    'only one of several has the revision',
    [a(askedAt('missing')), b(askedAt('superseded'))],
    { revision: 'abcdef' },
    ['pending', 'pending', 'http://a: there is no revision abcdef: as it is'],
  ],
  [
    'an invalid newest says nothing of a revision that the store has not been seen to have',
    [a({ ...askedAt('not_known'), verdict: 'invalid' })],
    { revision: 'abcdef' },
    ['pending', 'pending', 'revision abcdef is not known yet: as it is'],
  ],
];

for (const [title, answers, { revision, minWorkers = 1 }, expected] of cases) {
  test(`the verdict when ${title} is ${expected[1]} (${expected[0]})`, (t) => {
    const { outcome, verdict, text } = judgeAnswers(answers, { revision, minWorkers });
    t.deepEqual([outcome, verdict, text] as never, expected);
  });
}
