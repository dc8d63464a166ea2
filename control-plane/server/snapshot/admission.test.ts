import test from 'ava';
import { type Revision, toRevisionInfo } from '../store/revision.ts';
import { heldBackBy, isOutdated, type Judged } from './admission.ts';
import { buildSnapshots } from './build.ts';
import type { Serving, Verdict } from './served.ts';

const held: Verdict = { revision: 'b', outcome: 'held_back', reason: 'it removes all' };
const takenBack: Verdict = { revision: 'b', outcome: 'taken_back', reason: 'errors' };
const approved: Verdict = { revision: 'b', outcome: 'approved', reason: 'meant' };

const revision: Revision = {
  id: 'b',
  atMs: 0,
  author: undefined,
  message: '',
  files: [],
  problems: [],
};
const options = { mergeDomains: false, maxResponseBytes: 1_000 };
const outcome = buildSnapshots(revision, options, { encode: () => Buffer.alloc(0) });
if (!outcome.ok) throw new Error('the revision of this test is wrong');
const { built } = outcome;

/** Whether revision b, judged earlier, must be judged again because of the current verdict on it. */
function isJudgedAgain(
  verdict: Verdict | undefined,
  judged: Partial<Judged>,
  serving: Serving = { inForce: undefined, trial: undefined },
): boolean {
  const memory = {
    isKnown: true,
    rollsOut: true,
    inForce: undefined,
    wasInForce: () => false,
    ...{ wasTakenBack: () => false, wasServed: () => false, isRolling: false },
    verdictOf: () => verdict,
  };
  const newest = { revision, outcome, earlierVerdict: undefined, isHeldBack: false };
  return isOutdated(
    { ...newest, invalidSinceMs: undefined, ...judged },
    {
      ...{ serving, before: undefined, memory },
      ...{ allowsRemoval: false, steps: [] },
    },
  );
}

test('a revision is judged again when a verdict on it is new', (t) => {
  const info = toRevisionInfo(revision);
  const trial = { revision, sinceMs: 0, built, earlierVerdict: undefined, isOffered: () => true };
  const inForce = { revision: info, sinceMs: 0, built, isAtOnce: false };
  const refused = { invalidSinceMs: 1 };
  const heldBack = { ...refused, isHeldBack: true };
  const invalid = { ...refused, outcome: { ok: false, problems: [] } } as const;
  t.deepEqual(
    [undefined, held, takenBack, approved].map((verdict) => [
      isJudgedAgain(verdict, {}),
      isJudgedAgain(verdict, {}, { inForce: undefined, trial }),
      isJudgedAgain(verdict, {}, { inForce, trial: undefined }),
      isJudgedAgain(verdict, refused),
      isJudgedAgain(verdict, heldBack),
      isJudgedAgain(verdict, invalid),
    ]),
    [
      [false, false, false, false, false, false],
      [true, true, true, false, false, false],
      [true, false, false, false, false, false],
      [false, false, false, false, true, false],
    ],
  );
});

test('a removal is held back while all workers have the rules that it would remove', (t) => {
  const against = { ...held, against: 'rules' };
  t.is(heldBackBy(against, undefined, 'rules'), against);
  t.is(heldBackBy(against, undefined, 'other rules'), undefined);
  t.is(heldBackBy({ ...approved, against: 'rules' }, undefined, 'rules'), undefined);
});
