import test from 'ava';
import { emptyRecord, type RolloutOnRecord, type RolloutRecord } from '../record/record.ts';
import { type NodeGroup, noConditions } from '../snapshot/node-groups.ts';
import { parseRolloutSteps } from '../snapshot/rollout-steps.ts';
import { type Change, type Decision, decide, foreseeIndivisible } from './decide.ts';
import { parseRolloutPlan } from './plan.ts';
import { createIsWithin, toPools } from './pools.ts';
import type { Member, View } from './view.ts';

interface Given {
  readonly plan?: string;
  /** Steps of node groups: the pools after the first one. */
  readonly groups?: readonly string[];
  readonly members?: readonly Member[];
  readonly view?: Partial<View>;
  readonly open?: Partial<RolloutOnRecord>;
  readonly record?: RolloutRecord;
}

const judged = {
  good: { kind: 'good', text: 'within the bounds: no difference' },
  bad: { kind: 'bad', text: 'errors 9.0 % where it is' },
  silent: { kind: 'silent', text: '3 decisions with it' },
  unclear: { kind: 'unclear', text: 'worker one alone makes the difference' },
} as const;

const placeAt = (index: number) => String(index).padStart(3, '0');

/** The first ones have places that come first; all have what they are given. */
function workers(count: number, given: Partial<Member> = {}, from = 0): Member[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `'w${from + index}'`,
    pool: 0,
    place: placeAt(from + index),
    isChosen: false,
    state: 'in_force',
    refusal: undefined,
    silentForMs: 0,
    isUnused: false,
    ...given,
  }));
}

/** The first ones are waited for or refuse. */
function workersOf(count: number, { pending = 0, refusing = 0, forMs = 0 }): Member[] {
  return workers(count).map((member, index) => {
    if (index < refusing) {
      return { ...member, state: 'refused', refusal: { text: 'no such unit', forMs } };
    }
    return index < refusing + pending ? { ...member, state: 'pending' } : member;
  });
}

const toGroup = (text: string, index: number): NodeGroup => {
  const parsed = parseRolloutSteps(text);
  if (!parsed.ok) throw new Error(parsed.reason);
  const name = `group-${index}`;
  return { name, domains: [], match: noConditions, rollout: parsed.steps, offset: undefined };
};

const places = (count: number) => Array.from({ length: count }, (_, index) => placeAt(index));

const none = { having: 0, others: 0, mayBeElsewhere: false };
const running: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 0,
  chosen: places(2),
  whole: [],
  reason: '',
};

/** A rollout in its first step, of a leader with 20 workers of which 2 have it. */
function decideOn(given: Given): Decision {
  const parsed = parseRolloutPlan(given.plan ?? 'canary=10%,hold=60s');
  if (!parsed.ok) throw new Error(parsed.reason);
  const open = { ...running, ...given.open };
  const isWithin = createIsWithin(open);
  const members = (given.members ?? workers(20)).map((member) => ({
    ...member,
    isChosen: isWithin(member),
  }));
  const view: View = {
    trial: { revision: 'new', content: 'new content', supersedes: false },
    newer: undefined,
    isLacked: false,
    members,
    connected: members.length,
    peopled: new Set(members.map(({ pool }) => pool)),
    gone: none,
    judgement: judged.good,
    unknown: undefined,
    isGathered: true,
    isAwaited: false,
    heldMs: 0,
    leads: true,
    isVacant: false,
    isLed: true,
    ...given.view,
  };
  const pools = toPools(parsed.plan.steps, (given.groups ?? []).map(toGroup));
  const record = given.record ?? { ...emptyRecord, rollout: open };
  return decide(view, record, { plan: parsed.plan, pools });
}

const noChange = (phase: Decision['phase'], text: string): Decision => ({
  change: undefined,
  phase,
  text,
});
const takesBack = (reason: string): Decision => ({
  change: { kind: 'take_back', reason },
  phase: 'taking_back',
  text: reason,
});
const pausesWith = (reason: string, phase: Decision['phase']): Decision => ({
  change: { kind: 'pause', reason },
  phase,
  text: reason,
});
const gives = (step: number, chosen: readonly string[], text: string, whole: number[] = []) => ({
  change: { kind: 'give', step, share: { chosen, whole }, text } as const,
  phase: 'spreading' as const,
  text: '',
});
const completes = (text: string): Decision => ({
  change: { kind: 'complete', text },
  phase: 'holding',
  text: '',
});
const does = (kind: Change['kind']): Decision => ({
  change: { kind } as Change,
  phase: 'gathering',
  text: '',
});

const other = { ...emptyRecord, rollout: { ...running, revision: 'f'.repeat(40) } };
const superseding = { revision: 'new', content: 'new content', supersedes: true };
const refuses = "worker 'w0' refuses it: no such unit";
const fewShare = { plan: '20%:60s', open: { chosen: places(4) } };
const second = { plan: '10%:30s,50%:60s', open: { step: 1, chosen: places(10) } };

const views: readonly (readonly [string, Given, Decision])[] = [
  // The revision on trial is not on record.
  [
    'nobody decides on the record: begins',
    { record: emptyRecord, view: { leads: false, isVacant: true } },
    does('begin'),
  ],
  ['it led the rollout before: begins', { record: emptyRecord }, does('begin')],
  [
    'another one leads, but no rollout: waits',
    { record: emptyRecord, view: { leads: false } },
    noChange('gathering', ''),
  ],
  [
    'the same revision was taken back before: begins',
    { open: { outcome: 'taken_back' } },
    does('begin'),
  ],
  [
    'the same revision was in force before: begins',
    { open: { outcome: 'in_force' } },
    does('begin'),
  ],
  [
    'another rollout runs: waits for it',
    { record: other },
    noChange('gathering', 'waits for the rollout of ffffffffffff'),
  ],
  [
    'another rollout runs without a leader: waits for it',
    { record: other, view: { leads: false, isVacant: true } },
    noChange('gathering', 'waits for the rollout of ffffffffffff'),
  ],
  [
    'another rollout runs, and is superseded: begins, whoever leads',
    { record: other, view: { leads: false, trial: superseding } },
    does('begin'),
  ],
  [
    'superseding without another rollout, and another one leads: waits',
    { record: emptyRecord, view: { leads: false, trial: superseding } },
    noChange('gathering', ''),
  ],

  // A follower.
  [
    'the leader has stopped: leads',
    { view: { leads: false, isVacant: true, isLed: false } },
    does('lead'),
  ],
  [
    'the leader has stopped, and it is bad: leads first',
    { view: { leads: false, isVacant: true, judgement: judged.bad } },
    does('lead'),
  ],
  [
    'it is bad, and the leader lives: follows',
    { view: { leads: false, judgement: judged.bad } },
    noChange('holding', ''),
  ],
  [
    'it is bad, and the leader gives no sign of life: takes back',
    { view: { leads: false, isLed: false, judgement: judged.bad } },
    {
      change: { kind: 'take_back', reason: 'errors 9.0 % where it is; 2 workers had it' },
      phase: 'holding',
      text: '',
    },
  ],
  [
    'one of many refuses, and the leader gives no sign of life: follows',
    { ...fewShare, members: workersOf(20, { refusing: 1 }), view: { leads: false, isLed: false } },
    noChange('spreading', ''),
  ],
  [
    'nothing is bad, and the leader gives no sign of life: follows',
    { view: { leads: false, isLed: false } },
    noChange('holding', ''),
  ],
  [
    'follows where nobody has it',
    { open: { chosen: [] }, view: { leads: false } },
    noChange('gathering', ''),
  ],
  [
    'follows where a whole pool has it',
    { open: { chosen: [], whole: [0] }, view: { leads: false } },
    noChange('holding', ''),
  ],
  [
    'follows where it is on its way',
    { members: workersOf(20, { pending: 1 }), view: { leads: false } },
    noChange('spreading', ''),
  ],
  [
    'follows a pause',
    { open: { outcome: 'paused', reason: 'lunch' }, view: { leads: false } },
    noChange('paused', 'lunch'),
  ],

  // Refusals.
  [
    'one of three refuses: takes back',
    { open: { chosen: places(3) }, members: workersOf(20, { refusing: 1 }) },
    takesBack(`${refuses}; 3 workers had it`),
  ],
  [
    'one of four refuses, the others accept: pauses',
    { ...fewShare, members: workersOf(20, { refusing: 1 }) },
    pausesWith(`${refuses}; 3 other workers accepted it`, 'paused'),
  ],
  [
    'two of seven refuse: pauses',
    { open: { chosen: places(7) }, members: workersOf(20, { refusing: 2 }) },
    pausesWith(`${refuses}; 5 other workers accepted it`, 'paused'),
  ],
  [
    'two of six refuse: takes back',
    { open: { chosen: places(6) }, members: workersOf(20, { refusing: 2 }) },
    takesBack(`${refuses}; 6 workers had it`),
  ],
  [
    'one of four refuses, one accepts, others are on their way: pauses at once',
    { ...fewShare, members: workersOf(20, { refusing: 1, pending: 2 }) },
    pausesWith(`${refuses}; 1 other worker accepted it`, 'paused'),
  ],
  [
    'one of four refuses, and no other one answers: waits',
    { ...fewShare, members: workersOf(20, { refusing: 1, pending: 3, forMs: 2_999 }) },
    noChange('spreading', "waits for 4 workers, such as 'w0'"),
  ],
  [
    'one of four refuses, and no other one answers for 3 s: takes back',
    { ...fewShare, members: workersOf(20, { refusing: 1, pending: 3, forMs: 3_000 }) },
    takesBack(`${refuses}; 4 workers had it`),
  ],
  [
    'two of seven refuse, one of them for 3 s, and no other one answers: takes back',
    {
      open: { chosen: places(7) },
      members: [
        ...workersOf(1, { refusing: 1, forMs: 3_000 }),
        ...workersOf(7, { refusing: 2, pending: 5 }).slice(1),
      ],
    },
    takesBack(`${refuses}; 7 workers had it`),
  ],
  [
    'what a worker without it refuses is no refusal of it',
    {
      members: workers(20).map((each, index) =>
        index === 9
          ? { ...each, state: 'refused', refusal: { text: 'other', forMs: 9_000 } }
          : each,
      ),
    },
    noChange('holding', 'is watched for another 1m'),
  ],
  [
    'it is paused, and one of many refuses: stays so',
    {
      ...fewShare,
      open: { ...fewShare.open, outcome: 'paused', reason: 'lunch' },
      members: workersOf(20, { refusing: 1 }),
    },
    noChange('paused', 'lunch'),
  ],
  [
    'it is paused, and many refuse: takes back',
    {
      ...fewShare,
      open: { ...fewShare.open, outcome: 'paused', reason: 'lunch' },
      members: workersOf(20, { refusing: 2 }),
    },
    takesBack(`${refuses}; 4 workers had it`),
  ],
  [
    'it is paused, and nothing is bad: stays so, however long',
    { open: { outcome: 'paused', reason: 'lunch' }, view: { heldMs: 1e9 } },
    noChange('paused', 'lunch'),
  ],

  [
    'it is paused, and more have it than the step allows: the share shrinks',
    {
      plan: '50%:60s',
      open: { chosen: places(4), outcome: 'paused', reason: 'lunch' },
      members: workers(5),
    },
    gives(0, places(2), ''),
  ],
  [
    'it is paused, and a peer is unknown: stays as it is',
    {
      plan: '50%:60s',
      open: { chosen: places(4), outcome: 'paused', reason: 'lunch' },
      members: workers(5),
      view: { unknown: 'waits for peer b' },
    },
    noChange('paused', 'lunch'),
  ],

  // Workers that vanish.
  [
    'one of three with it is gone: goes on',
    { view: { gone: { ...none, having: 1, others: 0 } } },
    noChange('holding', 'is watched for another 1m'),
  ],
  [
    'two of four with it are gone: takes back',
    { view: { gone: { ...none, having: 2, others: 0 } } },
    takesBack('2 of 4 workers with it are gone; 4 workers had it'),
  ],
  [
    'the only one with it is gone: takes back',
    {
      open: { chosen: places(1) },
      members: workers(19, {}, 1),
      view: { gone: { ...none, having: 1, others: 0 } },
    },
    takesBack('1 of 1 worker with it is gone; 1 worker had it'),
  ],
  [
    'the only one with it is gone, or where nobody is asked: nobody gets it in its place',
    {
      open: { chosen: places(1) },
      members: workers(19, {}, 1),
      view: { gone: { having: 1, others: 0, mayBeElsewhere: true } },
    },
    noChange(
      'holding',
      'waits: 1 of 1 worker with it is gone, or at another control plane, which is not asked',
    ),
  ],
  [
    'as many are gone elsewhere: goes on',
    { plan: '50%:60s', members: workers(4), view: { gone: { ...none, having: 2, others: 2 } } },
    noChange('holding', 'is watched for another 1m'),
  ],
  [
    'fewer are gone elsewhere: takes back',
    { members: workers(5), view: { gone: { ...none, having: 2, others: 2 } } },
    takesBack('2 of 4 workers with it are gone; 4 workers had it'),
  ],
  [
    'two of four that are known are gone, and more of the share may be at a peer that is unknown: waits',
    {
      open: { chosen: places(9) },
      members: workers(2),
      view: { gone: { having: 2, others: 0, mayBeElsewhere: false }, unknown: 'waits for peer b' },
    },
    noChange('holding', 'waits for peer b'),
  ],
  [
    'the only one elsewhere is gone as well: goes on',
    { members: workers(1), view: { gone: { ...none, having: 2, others: 1 } } },
    gives(0, [], ''),
  ],
  [
    'all have it, and many are gone: takes back',
    { members: workers(2), view: { gone: { ...none, having: 2, others: 0 } } },
    takesBack('2 of 4 workers with it are gone; 4 workers had it'),
  ],
  [
    'those that it is on its way to do not have it',
    { members: workersOf(20, { pending: 2 }), view: { gone: { ...none, having: 1, others: 0 } } },
    takesBack('1 of 1 worker with it is gone; 3 workers had it'),
  ],

  [
    'one is gone while it is unknown whether the others of the share have it: goes on',
    {
      members: workers(19, {}, 1),
      view: { gone: { ...none, having: 1, others: 0 }, unknown: 'waits for peer b' },
      open: { chosen: places(4) },
    },
    noChange('holding', 'waits for peer b'),
  ],
  [
    'half of the share is gone while a peer is unknown: takes back',
    {
      members: workers(19, {}, 2),
      view: { gone: { ...none, having: 2, others: 0 }, unknown: 'waits for peer b' },
      open: { chosen: places(4) },
    },
    takesBack('2 of 4 workers with it are gone; 4 workers had it'),
  ],

  // Figures, at every moment.
  [
    'it is bad: takes back',
    { view: { judgement: judged.bad } },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'it is bad where only one worker has it: takes back',
    { open: { chosen: places(1) }, view: { judgement: judged.bad } },
    takesBack('errors 9.0 % where it is; 1 worker had it'),
  ],
  [
    'it is bad where a whole pool has it: takes back',
    { open: { chosen: [], whole: [0] }, view: { judgement: judged.bad } },
    takesBack('errors 9.0 % where it is; 20 workers had it'),
  ],
  [
    'it is bad while a peer is unknown: takes back',
    { view: { judgement: judged.bad, unknown: 'waits for peer b' } },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'it is bad while workers are connecting: takes back',
    { view: { judgement: judged.bad, isGathered: false } },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'it is bad while it spreads: takes back',
    { members: workersOf(20, { pending: 1 }), view: { judgement: judged.bad } },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'another control plane cannot follow, and a newer one waits: takes back',
    { view: { isLacked: true, newer: { revision: 'f'.repeat(40), isWaiting: true } } },
    takesBack('revision ffffffffffff has taken its place'),
  ],
  [
    'another control plane cannot follow, and the newer one is invalid: pauses',
    { view: { isLacked: true, newer: { revision: 'f'.repeat(40), isWaiting: false } } },
    pausesWith(
      'another control plane cannot follow, as its store does not have revision new any more',
      'paused',
    ),
  ],
  [
    'another control plane cannot follow, and it is bad: takes back',
    {
      view: {
        isLacked: true,
        newer: { revision: 'f'.repeat(40), isWaiting: false },
        judgement: judged.bad,
      },
    },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'another control plane does not have the newest one yet: waits',
    { view: { isLacked: true, unknown: 'waits for peer b to follow this step' } },
    noChange('holding', 'waits for peer b to follow this step'),
  ],
  [
    'it is bad while paused: takes back',
    { open: { outcome: 'paused', reason: 'lunch' }, view: { judgement: judged.bad } },
    takesBack('errors 9.0 % where it is; 2 workers had it'),
  ],
  [
    'it is bad where nobody was given it: says nothing of it',
    { open: { chosen: [] }, view: { judgement: judged.bad } },
    gives(0, places(2), 'step 1 of 2, 2 of 20 workers'),
  ],

  // The unknown keeps from going on.
  [
    'a peer is unknown at the end of a hold: waits',
    { view: { unknown: 'waits for peer b', heldMs: 60_000 } },
    noChange('holding', 'waits for peer b'),
  ],
  [
    'a peer is unknown while it spreads',
    { members: workersOf(20, { pending: 1 }), view: { unknown: 'waits for peer b' } },
    noChange('spreading', 'waits for peer b'),
  ],
  [
    'a peer is unknown before the first step',
    { open: { chosen: [] }, view: { unknown: 'waits for peer b' } },
    noChange('gathering', 'waits for peer b'),
  ],
  [
    'a peer is unknown where a whole pool has it',
    { open: { chosen: [], whole: [0] }, view: { unknown: 'waits for peer b' } },
    noChange('holding', 'waits for peer b'),
  ],
  [
    'workers are connecting',
    { open: { chosen: [] }, view: { isGathered: false } },
    noChange('gathering', 'workers are still connecting'),
  ],
  [
    'no worker is connected',
    { open: { chosen: [] }, members: [], view: { isGathered: false } },
    noChange('gathering', 'no worker is connected'),
  ],

  // The share of a step.
  [
    'those that had it may come back: gives it to no others',
    { open: { chosen: ['elsewhere'] }, view: { isAwaited: true } },
    noChange('spreading', 'waits for the workers that had it, which have left, to come back'),
  ],
  [
    'nobody has it: gives it to the first share',
    { open: { chosen: [] } },
    gives(0, places(2), 'step 1 of 2, 2 of 20 workers'),
  ],
  [
    'the workers of a later step have left: chooses others',
    { ...second, members: workers(20, {}, 100) },
    gives(
      1,
      workers(10, {}, 100).map(({ place }) => place),
      'step 2 of 3, 10 of 20 workers',
    ),
  ],
  [
    'a step is waited for',
    { members: workersOf(20, { pending: 1 }) },
    noChange('spreading', "waits for 1 worker, such as 'w0'"),
  ],
  [
    'workers without it have left: the share shrinks',
    { plan: '50%:60s', open: { chosen: places(4) }, members: workers(5) },
    gives(0, places(2), ''),
  ],
  [
    'it shrinks to those that had it',
    { plan: '50%:60s', open: { chosen: [placeAt(3), placeAt(4)] }, members: workers(3, {}, 2) },
    gives(0, [placeAt(3)], ''),
  ],
  [
    'a worker with it has left: no other one takes its place',
    { open: { chosen: [placeAt(0), placeAt(99)] } },
    noChange('holding', 'is watched for another 1m'),
  ],
  [
    'a pool that is whole stays so when another one shrinks',
    {
      plan: '50%:60s',
      groups: ['100%'],
      open: { step: 1, chosen: places(4), whole: [1] },
      members: [...workers(5), ...workers(2, { pool: 1 }, 10)],
    },
    gives(1, places(2), '', [1]),
  ],

  // The hold.
  [
    'a hold is not over a millisecond before its end',
    { view: { heldMs: 59_999 } },
    noChange('holding', 'is watched for another 1s'),
  ],
  [
    'the rest of a hold is told in whole seconds',
    { view: { heldMs: 58_999 } },
    noChange('holding', 'is watched for another 2s'),
  ],
  [
    'a hold ends: all steps are done',
    { view: { heldMs: 60_000 } },
    completes('step 1: within the bounds: no difference; all steps are done, so everybody gets it'),
  ],
  [
    'a hold ends: the next step',
    { plan: '10%:30s,50%:60s', view: { heldMs: 30_000 } },
    gives(1, places(10), 'step 1: within the bounds: no difference; step 2 of 3, 10 of 20 workers'),
  ],
  [
    'each step has a hold of its own',
    { ...second, view: { heldMs: 59_999 } },
    noChange('holding', 'is watched for another 1s'),
  ],
  [
    'the last step is done',
    { ...second, view: { heldMs: 60_000 } },
    completes('step 2: within the bounds: no difference; all steps are done, so everybody gets it'),
  ],
  [
    'a hold with too little traffic says so',
    { view: { heldMs: 1_000, judgement: judged.silent } },
    noChange('holding', 'is watched for another 59s (3 decisions with it)'),
  ],
  [
    'silent at the end of a hold: a second one',
    { view: { heldMs: 60_000, judgement: judged.silent } },
    noChange('silent', 'is watched for another 1m (3 decisions with it)'),
  ],
  [
    'silent until a second hold is all but over',
    { view: { heldMs: 119_999, judgement: judged.silent } },
    noChange('silent', 'is watched for another 1s (3 decisions with it)'),
  ],
  [
    'a silence is none before workers have reported twice, however short the hold is',
    { plan: 'canary=10%,hold=2s', view: { heldMs: 14_999, judgement: judged.silent } },
    noChange('silent', 'is watched for another 1s (3 decisions with it)'),
  ],
  [
    'silent for as long, with a short hold: goes on',
    { plan: 'canary=10%,hold=2s', view: { heldMs: 15_000, judgement: judged.silent } },
    completes(
      'step 1 could not be judged: 3 decisions with it; all steps are done, so everybody gets it',
    ),
  ],
  [
    'silent for two holds: goes on',
    { view: { heldMs: 120_000, judgement: judged.silent } },
    completes(
      'step 1 could not be judged: 3 decisions with it; all steps are done, so everybody gets it',
    ),
  ],
  [
    'silent for two holds, with a step after it',
    { plan: '10%:30s,50%:60s', view: { heldMs: 60_000, judgement: judged.silent } },
    gives(
      1,
      places(10),
      'step 1 could not be judged: 3 decisions with it; step 2 of 3, 10 of 20 workers',
    ),
  ],
  [
    'silent for two holds, and that stops: pauses',
    {
      plan: 'canary=10%,hold=60s,on-silence=stop',
      view: { heldMs: 120_000, judgement: judged.silent },
    },
    pausesWith('too little traffic to judge: 3 decisions with it', 'paused'),
  ],
  [
    'good in the second hold: goes on at once',
    { view: { heldMs: 61_000 } },
    completes('step 1: within the bounds: no difference; all steps are done, so everybody gets it'),
  ],
  [
    'unclear at the end of a hold: a second one',
    { view: { heldMs: 60_000, judgement: judged.unclear } },
    noChange('silent', 'is watched for another 1m (worker one alone makes the difference)'),
  ],
  [
    'unclear for two holds: pauses',
    { view: { heldMs: 120_000, judgement: judged.unclear } },
    pausesWith('worker one alone makes the difference', 'paused'),
  ],

  // Steps without a share.
  [
    'node groups take their steps before the others',
    {
      plan: '10%:60s',
      groups: ['50%:5s', '100%'],
      members: [...workers(20), ...workers(4, { pool: 1 }, 20), ...workers(3, { pool: 2 }, 30)],
      open: { chosen: [] },
    },
    gives(0, [placeAt(20), placeAt(21)], "step 1 of 5 (node group 'group-0'), 2 of 27 workers"),
  ],
  [
    'a node group whose steps are over has it whole, and the next one follows',
    {
      plan: '10%:60s,50%:60s',
      groups: ['10%:60s,100%:30s', '10%'],
      open: { step: 1, chosen: [], whole: [1] },
      members: [...workers(10), ...workers(10, { pool: 1 }, 20), ...workers(10, { pool: 2 }, 40)],
      view: { heldMs: 30_000 },
    },
    gives(
      2,
      [placeAt(40)],
      "step 2: within the bounds: no difference; step 3 of 7 (node group 'group-1'), 11 of 30 workers",
      [1],
    ),
  ],
  [
    'the workers outside of node groups are the last',
    {
      plan: '10%:60s,50%:60s',
      groups: ['10%:60s'],
      open: { step: 1, chosen: [], whole: [1] },
      members: [...workers(10), ...workers(10, { pool: 1 }, 20)],
      view: { heldMs: 60_000 },
    },
    gives(
      2,
      places(1),
      'step 2: within the bounds: no difference; step 3 of 5, 11 of 20 workers',
      [1],
    ),
  ],
  [
    'a node group that cannot be divided gets it whole, before the others',
    {
      groups: ['10%:60s'],
      open: { chosen: [] },
      members: [...workers(10), ...workers(1, { pool: 1 }, 20)],
    },
    gives(1, [], "step 2 of 4 (node group 'group-0'), 1 of 11 workers", [1]),
  ],
  [
    'a node group without workers waits for one',
    { groups: ['10%:60s'], open: { chosen: [] } },
    noChange(
      'gathering',
      "waits for a worker of node group 'group-0', which has none; 'rollout promote' or 'abort' ends it",
    ),
  ],
  [
    'a node group without workers waits for one, and those before it have it',
    {
      groups: ['100%', '10%'],
      open: { chosen: [] },
      members: workers(3, { pool: 1 }),
    },
    gives(0, [], "step 1 of 5 (node group 'group-0'), 3 of 3 workers", [1]),
  ],
  [
    'a node group of which it changes nothing for any worker is passed over',
    { groups: ['10%:60s'], open: { chosen: [] }, view: { peopled: new Set([0, 1]) } },
    gives(2, places(2), 'step 3 of 4, 2 of 20 workers', [1]),
  ],
  [
    'it changes nothing for anybody',
    { open: { chosen: [] }, members: [], view: { connected: 3 } },
    completes('it changes nothing for the workers that are connected, so everybody gets it'),
  ],
  [
    'all workers are of a group without steps',
    { groups: ['100%'], open: { chosen: [] }, members: workers(3, { pool: 1 }) },
    completes('its steps leave nobody out, so everybody gets it'),
  ],
  [
    'there is only one worker: waits for an approval',
    { open: { chosen: [] }, members: workers(1) },
    noChange(
      'indivisible',
      'the rollout has no effect, no share of the workers can be made: there is only one; it waits until somebody approves it',
    ),
  ],
  [
    'workers of another make alone: waits for an approval',
    { open: { chosen: [] }, members: workers(3, { place: '' }) },
    noChange(
      'indivisible',
      "the rollout has no effect, no share of the workers can be made: none of the 3, such as 'w0', names its instance; it waits until somebody approves it",
    ),
  ],
  [
    'only one worker, and that is fine: everybody gets it',
    { plan: 'canary=10%,on-indivisible=proceed', open: { chosen: [] }, members: workers(1) },
    completes('no share of the workers can be made: there is only one, so everybody gets it'),
  ],
];

for (const [title, given, expected] of views) {
  test(title, (t) => {
    t.deepEqual(decideOn(given), expected);
  });
}

test('before a revision comes it is foreseen whether a share can be made at any step', (t) => {
  const foresee = (steps: string, ...given: string[]) => {
    const parsed = parseRolloutPlan(steps);
    if (!parsed.ok) throw new Error(parsed.reason);
    const named = given.map((place, index) => ({ name: `'w${index}'`, place }));
    return foreseeIndivisible(named, parsed.plan);
  };
  t.is(foresee('10%'), undefined, 'nobody is connected');
  t.is(foresee('10%', 'a', 'b'), undefined);
  t.is(foresee('10%', '', '', 'b'), undefined, 'one of them names its instance');
  t.is(
    foresee('10%,50%', '', ''),
    "the next revision will have to be approved, since no share of the workers can be made: none of the 2, such as 'w0', names its instance",
  );
});

test('a step with more workers than the record can name is not taken, and says so', (t) => {
  const decision = decideOn({
    plan: '5%:30s,50%:60s',
    members: workers(41_000),
    open: { chosen: places(2) },
    view: { heldMs: 60_000 },
  });
  t.is(decision.change?.kind, 'pause');
  t.regex(decision.text, /^step 2 has 20500 workers, and the record holds 20000 of them/);
});
