// Decisions, as lines for review: decisions.txt lists the facts, in words that are defined below, and the decision.
// `REWRITE=1` rewrites the decisions.
import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { emptyRecord, type RolloutOnRecord } from '../record/record.ts';
import { type NodeGroup, noConditions } from '../snapshot/node-groups.ts';
import { parseRolloutSteps } from '../snapshot/rollout-steps.ts';
import { type Decision, decide, foreseeIndivisible, type RolloutChange } from './decide.ts';
import { parseRolloutPlan } from './plan.ts';
import { createIsWithin, toPools } from './pools.ts';
import type { Member, View } from './view.ts';

/** The words of a line by name, with their values. */
type Given = ReadonlyMap<string, string>;

const toGiven = (text: string): Given =>
  new Map(text.split(' ').map((word) => [word.split('=')[0] ?? '', word.replace(/^[^=]*=?/, '')]));

const trial = { revision: { id: 'new' }, content: 'new content' };
const judgements = {
  good: 'within the bounds: no difference',
  bad: 'errors 9.0 % where it is',
  silent: '3 decisions with it',
  unclear: 'worker one alone makes the difference',
};

const positionAt = (index: number) => String(index).padStart(3, '0');

/** Parses groups of workers, each as `COUNT[@POOL][/NUMBER OF THE FIRST][:pending|nameless|refused[:FOR MS]]`. */
function toMembers(text: string): Member[] {
  let next = 0;
  return text.split(',').flatMap((group) => {
    const [, count, pool, first, state, forMs] =
      /^(\d+)(?:@(\d+))?(?:\/(\d+))?(?::([a-z]+))?(?::(\d+))?$/.exec(group) ?? [];
    const from = Number(first ?? next);
    next = from + Number(count);
    return Array.from({ length: Number(count) }, (_, index) => ({
      name: `'w${from + index}'`,
      pool: Number(pool ?? 0),
      position: state === 'nameless' ? '' : positionAt(from + index),
      isChosen: false,
      state: state === 'pending' || state === 'refused' ? state : 'in_force',
      refusal:
        state === 'refused' ? { text: 'no such unit', forMs: Number(forMs ?? 0) } : undefined,
      silentForMs: 0,
      isUnused: false,
    }));
  });
}

/** Parses the positions of `[3,4]`, or the positions of this many first workers. */
function toPositions(text: string): string[] {
  if (text.startsWith('[')) return text.slice(1, -1).split(',').map(Number).map(positionAt);
  return Array.from({ length: Number(text) }, (_, index) => positionAt(index));
}

function toGroup(text: string, index: number): NodeGroup {
  const parsed = parseRolloutSteps(text);
  if (!parsed.ok) throw new Error(parsed.reason);
  const name = `group-${index}`;
  return { name, domains: [], match: noConditions, rollout: parsed.steps, offset: undefined };
}

function toOpen(given: Given): RolloutOnRecord {
  const outcome = (['paused', 'taken_back', 'in_force'] as const).find((each) => given.has(each));
  return {
    ...{ id: 'id', content: 'new content', outcome: outcome ?? 'running' },
    revision: given.get('record') === 'other' ? 'f'.repeat(40) : 'new',
    step: Number(given.get('step') ?? 0),
    chosen: toPositions(given.get('chosen') ?? '2'),
    whole: given.has('whole') ? [Number(given.get('whole'))] : [],
    reason: outcome === 'paused' ? 'lunch' : '',
  };
}

function toView(given: Given, open: RolloutOnRecord): View {
  const isWithin = createIsWithin(open);
  const members = toMembers(given.get('workers') ?? '20').map((member) => ({
    ...member,
    isChosen: isWithin(member),
  }));
  const kind = (['bad', 'silent', 'unclear'] as const).find((each) => given.has(each)) ?? 'good';
  const [, having, others, mayBe] = /^(\d+)\/(\d+)(\?)?$/.exec(given.get('gone') ?? '0/0') ?? [];
  const newer = { revision: 'f'.repeat(40), isWaiting: given.get('newer') === 'waits' };
  const peopled = given.get('peopled')?.split(',').map(Number);
  const follows = given.get('unknown') === 'follow' ? ' to follow this step' : '';
  return {
    trial: { ...trial, supersedes: given.has('supersedes') },
    newer: given.has('newer') ? newer : undefined,
    isLacked: given.has('lacked'),
    members,
    connected: Number(given.get('connected') ?? members.length),
    peopled: new Set(peopled ?? members.map(({ pool }) => pool)),
    gone: {
      ...{ having: Number(having), havingOf: new Map([[0, Number(having)]]) },
      ...{ others: Number(others), mayBeElsewhere: mayBe === '?' },
    },
    judgement: { kind, text: judgements[kind], by: 'errors', isQuiet: !given.has('busy') },
    unknown: given.has('unknown') ? `waits for peer b${follows}` : undefined,
    isGathered: !given.has('connecting'),
    isAwaited: given.has('awaited'),
    heldMs: Number(given.get('held') ?? 0),
    leads: !given.has('follows'),
    isVacant: given.has('vacant'),
    isLed: !given.has('unled'),
  };
}

/** Decides by default on a rollout in its first step, as its leader, with 20 workers of which the first 2 have the
 * revision. */
function decideOn(given: Given): Decision {
  const parsed = parseRolloutPlan(given.get('plan') ?? 'canary=10%,hold=60s');
  if (!parsed.ok) throw new Error(parsed.reason);
  const open = toOpen(given);
  const groups = given.get('groups')?.split(';') ?? [];
  const pools = toPools(parsed.plan.steps, groups.map(toGroup));
  const record = given.get('record') === 'none' ? emptyRecord : { ...emptyRecord, rollout: open };
  return decide(toView(given, open), record, { plan: parsed.plan, pools });
}

function show({ change, phase, text }: Decision): string {
  return `${phase}${text && `: ${text}`}${change === undefined ? '' : ` | ${showChange(change, text)}`}`;
}

/** `"` stands for the sentence of the phase. */
function showChange(change: RolloutChange, text: string): string {
  const { kind } = change;
  const reason = 'reason' in change ? change.reason : 'text' in change ? change.text : '';
  const sentence = reason === '' ? '' : `: ${reason === text ? '"' : reason}`;
  if (change.kind !== 'give') return `${kind}${sentence}`;
  const { chosen, whole } = change.share;
  const positions = chosen.length > 2 ? [chosen[0], 'to', chosen.at(-1)] : chosen;
  const to = positions.length === 0 ? 'nobody' : positions.join(' ');
  const pools = whole.length === 0 ? '' : ` and all of pool ${whole}`;
  return `give step ${change.step} to ${to}${pools}${sentence}`;
}

testLines(test, new URL('decisions.txt', import.meta.url), (given) =>
  show(decideOn(toGiven(given))),
);

test('the plan is checked in advance: at which step the workers cannot be divided', (t) => {
  const foresee = (steps: string, ...given: string[]) => {
    const parsed = parseRolloutPlan(steps);
    if (!parsed.ok) throw new Error(parsed.reason);
    const named = given.map((position, index) => ({ name: `'w${index}'`, position }));
    return foreseeIndivisible(named, parsed.plan);
  };
  t.is(foresee('10%'), undefined, 'no worker is connected');
  t.is(foresee('10%', 'a', 'b'), undefined);
  t.is(foresee('10%', '', '', 'b'), undefined, 'one of them names its instance');
  t.is(
    foresee('10%,50%', '', ''),
    "the next revision will have to be approved, since no share of the workers can be made: none of the 2 workers, such as 'w0', names its instance",
  );
});

test('a step with more workers than the record can name pauses with this reason', (t) => {
  const decision = decideOn(toGiven('plan=5%:30s,50%:60s workers=41000 held=60000'));
  t.is(decision.change?.kind, 'pause');
  t.regex(decision.text, /^step 2 has 20500 workers, and the record holds 20000 of them/);
});
