import test from 'ava';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import type { SnapshotState } from '../../snapshot/snapshot-state.ts';
import { createMarks } from './marks.ts';
import { markRevisions } from './revision-marks.ts';

type Served = { readonly id: string; readonly content?: string } | undefined;

function toServed(served: Served) {
  return (
    served && {
      revision: { id: served.id, atMs: 0, author: 'ann', message: `change ${served.id}` },
      content: served.content ?? served.id,
    }
  );
}

/** Snapshots that the test sets. */
function setUp(servedBefore?: string, inForce: Served = { id: 'a' }) {
  const clock = createManualClock();
  const marks = createMarks(clock);
  let listener = () => {};
  let state = { inForce: toServed(inForce) } as SnapshotState;
  const go = (to: { inForce?: Served; trial?: Served; withdrawn?: SnapshotState['withdrawn'] }) => {
    const { trial, withdrawn } = to;
    const now = 'inForce' in to ? toServed(to.inForce) : state.inForce;
    state = { inForce: now, trial: toServed(trial), withdrawn } as SnapshotState;
    listener();
  };
  const snapshots = {
    state: () => state,
    onChange(given: () => void) {
      listener = given;
      return () => {};
    },
  };
  markRevisions(snapshots, marks, servedBefore);
  const texts = () =>
    marks.read().map(({ kind, revision, text }) => `${kind} ${revision}: ${text}`);
  return { clock, marks, go, texts, again: () => markRevisions(snapshots, marks, 'a') };
}

test('a revision, a rollout that succeeds and one that is taken back are marked', (t) => {
  const { go, texts } = setUp();
  go({ inForce: { id: 'b' } });
  go({ trial: { id: 'c' } });
  go({ trial: { id: 'c' } });
  go({ inForce: { id: 'c' } });
  go({ trial: { id: 'd' } });
  go({});
  t.deepEqual(texts(), [
    'in_force b: Revision b ("change b", ann) is in force',
    'rollout c: The rollout of revision c ("change c", ann) begins',
    'in_force c: The rollout of revision c ("change c", ann) has reached all workers',
    'rollout d: The rollout of revision d ("change d", ann) begins',
    'taken_back d: Revision d ("change d", ann) is taken back',
  ]);
});

test('a revision that is replaced by another is marked with that one', (t) => {
  const { go, texts } = setUp();
  go({ trial: { id: 'c' } });
  go({ inForce: { id: 'e' }, withdrawn: { revision: 'c', by: 'e' } });
  t.deepEqual(texts().slice(1), [
    'taken_back c: Revision c ("change c", ann) is taken back: revision e has taken its place',
    'in_force e: Revision e ("change e", ann) is in force',
  ]);
});

test('a start marks only revisions that came into force meanwhile', (t) => {
  t.deepEqual(setUp().texts(), []);
  t.deepEqual(setUp('a').texts(), []);
  t.deepEqual(setUp('z').texts(), ['in_force a: Revision a ("change a", ann) is in force']);
});

test('a rollout that continues after a restart is not marked as begun again, but one after an end is', (t) => {
  const { go, texts, again } = setUp();
  go({ trial: { id: 'c' } });
  again();
  go({ trial: { id: 'c' } });
  t.is(texts().length, 1);
  go({});
  go({ trial: { id: 'c' } });
  t.is(texts().length, 3);
});

test('marks are kept for an hour, the newest 400 of them, with short texts', (t) => {
  const { clock, marks } = setUp();
  for (let index = 0; index < 420; index++) {
    marks.note({ kind: 'reset', revision: undefined, text: `${index} ${'x'.repeat(9_000)}` });
    clock.advance(1_000);
  }
  const all = marks.read();
  t.is(all.length, 400);
  t.regex(all[0]?.text ?? '', /^20 x+\.\.\.$/);
  t.is(all[0]?.text.length, 303);
  clock.advance(3_240_000);
  t.is(marks.read().length, 360);
});
