// Steps that scenarios do not cover, as they have no policy.
import test from 'ava';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { sharedTiming } from '../../../test/support/simulated-fleet.ts';
import { startRecord } from '../record/record-state.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { startFleet } from './fleet-state.ts';
import { step } from './fleet-step.ts';

test('an approval of a revision that breaks the policy covers its own changes alone', (t) => {
  const options = {
    id: 'a',
    name: 'a',
    location: 'p',
    ownLocation: 'p',
    steps: '',
    timing: sharedTiming,
  };
  const now = { monotonicMs: 0, wallMs: 0 };
  const record = startRecord(options, now);
  const snapshots: SnapshotState = {
    newest: {
      ...{ revision: revisionOf(3), content: 'c', valid: false, isHeldBack: false },
      ...{ isWaiting: false, earlierVerdict: undefined },
      problems: [problemOf('error', 'policy', '(all files)', 'not allowed')],
    },
    ...{ inForce: undefined, trial: undefined, withdrawn: undefined, stale: undefined },
    store: {
      ...{ reachable: true, lastSuccessMs: 0, failingSinceMs: undefined },
      ...{ lastError: undefined, revision: undefined },
    },
    counts: { accepted: 0, refused: 0, takenBack: 0 },
  };
  const state = startFleet({ reportsOutcomes: false, hasPeers: false }, { record, monotonicMs: 0 });
  const facts = { ...now, record, snapshots, freshId: 'fresh' };
  const word = { asked: 1, reason: 'it is meant', by: 'ada' };
  const approve = (revision: string, contentOfStep: string | undefined) =>
    step(state, { kind: 'approve', revision, contentOfStep, ...word }, facts).effects;
  const [answer] = approve(revisionOf(1).id, undefined);
  t.regex(answer?.kind === 'answer' ? (answer.problem ?? '') : '', /is not the newest one/);
  t.deepEqual(pluck(approve(revisionOf(2).id, 'content of 2'), 'kind'), ['write']);
});
