// The table of a fleet: which event has which effects in which state, and a scenario that shows it.
import { openRolloutOf, type RolloutRecord } from '../../control-plane/server/record/record.ts';
import { leads } from '../../control-plane/server/record/record-state.ts';
import type {
  Facts,
  FleetEffect,
  FleetEvent,
  FleetState,
  Turn,
} from '../../control-plane/server/rollout/fleet-state.ts';

const head = `# What a control plane does: an event, the states in which it happens, and below each state the effects of that step in their
# order, with a scenario of scenarios/ that shows them, or why it cannot happen. Of a check of the workers (followed), the
# effects that each one has are left out: tick of the record, and poll_store every five seconds. A write is named by what it
# changes on record. REWRITE=1 writes this (scenarios.test.ts).
`;

const states = [
  'nothing on trial',
  'on trial, not begun',
  'on record, not here',
  'leads, running',
  'leads, paused',
  'follows, running',
  'follows, paused',
  'taken back, not on record',
  'stopped',
] as const;
type StateName = (typeof states)[number];

const events = [
  ...['check', 'followed', 'written', 'not written', 'found_trial', 'found_in_force', 'located'],
  ...['answered', 'asked', 'act pause', 'act resume', 'act retry', 'act promote', 'act abort'],
  ...['approve', 'undo', 'stop', 'handed_over'],
];

/** Why the event cannot happen in the state, human-readable. */
function whyImpossible(event: string, state: StateName): string | undefined {
  if (event === 'handed_over' && state !== 'stopped') return 'it stops first';
  if (event === 'followed' && state === 'stopped') return 'a check is over before any other event';
  if (event === 'written' && state.startsWith('follows')) return 'whoever has written leads';
  return undefined;
}

export function createFleetTable() {
  /** By event, then by state, then by effects: the first scenario. */
  const shown = new Map<string, string>();
  return {
    note(scenario: string, before: FleetState, event: FleetEvent, facts: Facts, { effects }: Turn) {
      const names = effects.flatMap((each) => nameEffect(each, event, facts) ?? []);
      const key = [nameEvent(event), nameState(before, facts), toList(names)].join('\n');
      const known = shown.get(key);
      if (known === undefined || scenario < known) shown.set(key, scenario);
    },
    toText() {
      const lines = events.flatMap((event) => ['', `## ${event}`, ...toLines(event)]);
      return `${head}${lines.join('\n')}\n`;
    },
  };

  function toLines(event: string): string[] {
    return states.flatMap((state) => {
      const start = `${event}\n${state}\n`;
      const rows = [...shown].filter(([key]) => key.startsWith(start)).sort();
      const texts = rows.map(([key, scenario]) => {
        return `    ${key.slice(start.length)} (${scenario.replace('.txt', '')})`;
      });
      const none = [`    cannot happen: ${whyImpossible(event, state) ?? 'NO SCENARIO SHOWS IT'}`];
      return [`  ${state}`, ...(texts.length > 0 ? texts : none)];
    });
  }
}

function nameEvent(event: FleetEvent): string {
  if (event.kind === 'written') return event.isWritten ? 'written' : 'not written';
  return event.kind === 'act' ? `act ${event.action}` : event.kind;
}

function nameState({ isStopped, following }: FleetState, { record, snapshots }: Facts): StateName {
  const { running } = following;
  const open = openRolloutOf(record.known.record);
  const onTrial = snapshots.trial?.revision.id;
  if (isStopped) return 'stopped';
  if (running?.takenBack !== undefined) return 'taken back, not on record';
  if (open !== undefined && open.revision === onTrial) {
    const who = leads(record) ? 'leads' : 'follows';
    return `${who}, ${open.outcome === 'paused' ? 'paused' : 'running'}`;
  }
  if (onTrial !== undefined) return 'on trial, not begun';
  return open === undefined ? 'nothing on trial' : 'on record, not here';
}

function nameEffect(effect: FleetEffect, event: FleetEvent, facts: Facts): string | undefined {
  const { kind } = effect;
  const isOfEach = kind === 'tick' || kind === 'poll_store';
  if (isOfEach && event.kind === 'followed') return undefined;
  if (kind === 'offer_trial') return `offer_trial`;
  if (kind === 'log') return effect.level === 'warning' ? 'warn' : 'log';
  if (kind === 'answer') return effect.problem === undefined ? 'answer done' : 'answer why not';
  if (kind === 'ask_peers') return effect.undoes ? 'ask_peers to undo' : 'ask_peers';
  if (kind === 'write') return `write ${nameChange(effect.write.change, facts)}`;
  return kind;
}

function nameChange(
  change: (record: RolloutRecord) => RolloutRecord | undefined,
  { record }: Facts,
): string {
  const before = record.known.record;
  const after = change(before);
  if (after === undefined) return 'nothing any more';
  const [was, is] = [before.rollout, after.rollout];
  if (is !== null && was?.id !== is.id) return is.outcome === 'running' ? 'begin' : is.outcome;
  if (was?.outcome !== is?.outcome) return is?.outcome ?? '';
  if (was?.step !== is?.step || was?.chosen.join() !== is?.chosen.join()) return 'share';
  if (was?.whole.join() !== is?.whole.join()) return 'share';
  if (before.after !== after.after) return 'leader';
  if (before.inForce[0]?.content !== after.inForce[0]?.content) return 'in force at once';
  if (before.verdicts !== after.verdicts) return after.verdicts[0]?.outcome ?? 'word';
  if (before.outcomes !== after.outcomes) return 'history';
  if (before.steps !== after.steps) return 'steps';
  return 'leader';
}

/** Repeated effects count once. */
function toList(names: readonly string[]): string {
  const list = names.filter((name, at) => name !== names[at - 1]);
  return list.length === 0 ? 'nothing' : list.join(', ');
}
