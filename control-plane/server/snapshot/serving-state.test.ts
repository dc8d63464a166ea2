import test from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import type { Admission, RevisionMemory } from './admission.ts';
import { buildSnapshots } from './build.ts';
import type { Verdict } from './served.ts';
import { type ServingEvent, type ServingState, startServing, step } from './serving-state.ts';

const memory: RevisionMemory = {
  isKnown: true,
  rollsOut: false,
  inForce: undefined,
  wasInForce: () => false,
  ...{ wasTakenBack: () => false, wasServed: () => false, isRolling: false },
  verdictOf: () => undefined,
};
const facts = { memory, wallMs: 1 };
const options = { allowsRemoval: false, knowsMakers: true, folder: '', store: 'a store' };
const outcome = { ok: false, problems: [] } as const;

function toRevision(id: string) {
  return { id, atMs: 0, author: undefined, message: undefined, files: [], problems: [] };
}

function apply(state: ServingState, event: ServingEvent): [ServingState, string[]] {
  const turn = step(state, event, facts);
  return [turn.state, turn.effects.map((each) => (each.kind === 'log' ? each.text : each.kind))];
}

/** `turns`: that of the state in which it was judged. */
function toJudged(id: string, turns: number): Extract<ServingEvent, { kind: 'judged' }> {
  const admission: Admission = {
    ...{ becomes: 'refused', problems: [], isHeldBack: false, trial: 'stays' },
    exception: 'an outage',
  };
  const candidate = { revision: toRevision(id), outcome, earlierVerdict: undefined };
  return { kind: 'judged', candidate, admission, way: { steps: [], approvals: '' }, turns };
}

/** The revision is examined and gets a judgement. */
function judged(state: ServingState, id: string, turns: number): [ServingState, string[]] {
  const event = toJudged(id, turns);
  const { revision } = event.candidate;
  return apply({ ...state, examined: { revision, isBegun: true } }, event);
}

test('a revision that breaks the policy with an exception is logged once', (t) => {
  let state = startServing(options);
  const logged: string[] = [];
  for (const id of ['first', 'first', 'second']) {
    const [next, lines] = judged(state, id, state.turns);
    state = next;
    logged.push(...lines.filter((line) => line.startsWith('audit')));
  }
  t.deepEqual(logged, [
    'audit: revision first breaks the policy, by its own word: an outage',
    'audit: revision second breaks the policy, by its own word: an outage',
  ]);
});

test('a judgement by outdated facts is repeated', (t) => {
  const [state] = apply(startServing(options), { kind: 'reconsider' });
  t.deepEqual(judged(state, 'first', state.turns - 1)[1], ['judge']);
  t.not(judged(state, 'first', state.turns)[1][0], 'judge');
});

test('an admission of a revision that is no longer the newest is dropped', (t) => {
  const [state] = apply(startServing(options), { kind: 'found', revision: toRevision('second') });
  const revision = toRevision('first');
  t.deepEqual(apply(state, { kind: 'built', purpose: 'examine', revision, outcome }), [state, []]);
  t.deepEqual(apply(state, toJudged('first', state.turns)), [state, []]);
});

test('the author of a revision is determined if there is a policy, and not for the revision in force', (t) => {
  const files = [
    { path: 'a.yaml', text: ruleText('a', 1) },
    { path: policyFile, text: 'policies: [{domains: a, owners: [ada]}]\n' },
  ];
  const [first, second] = ['first', 'second'].map((id) => ({ ...toRevision(id), files }));
  if (first === undefined || second === undefined) return;
  const { serialize: encode } = loadProtos().rateLimitConfig;
  const built = buildSnapshots(first, { mergeDomains: false, maxResponseBytes: 1e6 }, { encode });
  const [state] = apply(startServing(options), {
    ...{ kind: 'restored', revision: first, outcome: built, why: 'it was kept' },
  });
  const effectsOf = (revision: typeof first) => {
    const [examined] = apply(state, { kind: 'found', revision: revision });
    return apply(examined, { kind: 'built', purpose: 'examine', revision, outcome: built })[1];
  };
  t.false(effectsOf(first).includes('judge'));
  t.true(effectsOf(second).includes('judge'));
});

test('a newer revision is examined to its end when its predecessor gets a new verdict', (t) => {
  const revision = { ...toRevision('first'), files: [{ path: 'a.yaml', text: ruleText('a', 1) }] };
  const { serialize: encode } = loadProtos().rateLimitConfig;
  const limits = { mergeDomains: false, maxResponseBytes: 1e6 };
  const built = buildSnapshots(revision, limits, { encode });
  const verdict = { revision: 'first', reason: 'it removes much' };
  const logged = (outcome: Verdict['outcome']) => ({
    wallMs: 1,
    memory: { ...memory, verdictOf: () => ({ ...verdict, outcome }) },
  });
  const [held, approved] = [logged('held_back'), logged('approved')];
  let { state } = step(startServing(options), { kind: 'found', revision: revision }, held);
  const first: ServingEvent = { kind: 'built', purpose: 'examine', revision, outcome: built };
  ({ state } = step(state, first, held));
  t.true(state.newest?.isHeldBack);
  const second = toRevision('second');
  ({ state } = step(state, { kind: 'found', revision: second }, held));
  ({ state } = step(state, { kind: 'reconsider' }, approved));
  const done: ServingEvent = { kind: 'built', purpose: 'examine', revision: second, outcome };
  t.is(step(state, done, approved).state.newest?.revision, second);
});
