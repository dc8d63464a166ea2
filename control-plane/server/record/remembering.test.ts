// What a control plane puts on record, as lines for review: remembering.txt lists polls in sequence, in the words that
// are defined below, and the result of each. `REWRITE=1` rewrites the results.
import test from 'ava';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { InForceState, SnapshotState } from '../snapshot/snapshot-state.ts';
import {
  emptyRecord,
  type RolloutOnRecord,
  type RolloutRecord,
  withInForce,
  withVerdict,
} from './record.ts';
import { noMemory, remember, type ToRemember } from './remembering.ts';

type Newest = NonNullable<SnapshotState['newest']>;

const open: RolloutOnRecord = {
  ...{ id: 'id', revision: 'new', content: 'rules of new', outcome: 'running', step: 0 },
  ...{ chosen: [], whole: [], reason: '' },
};
const heldBack = problemOf('error', 'large-removal', '(all files)', 'no domain would be left');
const errors = [
  { ...problemOf('error', 'other', 'a.yaml', 'no unit'), line: 4, column: 25 },
  problemOf('error', 'other', 'b.yaml', 'no limit'),
  problemOf('warning', 'other', 'c.yaml', 'is old'),
];

/** Parses `REVISION`, or `REVISION:OTHER` for a revision with the rules of another one. */
function toKnown(text: string) {
  const [id = '', other = id] = text.split(':');
  return {
    id,
    revision: { id, atMs: 0, author: undefined, message: undefined },
    content: `rules of ${other}`,
  };
}

function toInForce(text: string, isAtOnce: boolean): InForceState {
  const [known = '', since] = text.split('@');
  const { revision, content } = toKnown(known);
  const sinceMs = Number(since ?? 0);
  return {
    ...{ revision, content, isAtOnce, sinceMs, mayRemove: false, domains: [], leftOut: [] },
    ...{ served: { domains: 0, limits: 0, fewer: [], fewerInAll: 0 }, nodeGroups: [], groups: [] },
  };
}

function toNewest(text: string, problems: readonly Problem[]): Newest {
  const { revision, content } = toKnown(text);
  return {
    ...{ revision, problems, valid: problems.length === 0, isHeldBack: problems[0] === heldBack },
    ...{
      content: problems === errors ? undefined : content,
      isWaiting: false,
      earlierVerdict: undefined,
    },
  };
}

/** Parses revisions such as `a,b:a`, brought into force one after the other. */
function toRecord(text: string): RolloutRecord {
  return text.split(',').reduce((record, each, atMs) => {
    const { id, content } = toKnown(each);
    return withInForce(record, { revision: id, content }, { reason: '', by: '', atMs });
  }, emptyRecord);
}

/** Parses `taken_back/REVISION`, or `held_back/REVISION/AGAINST` for a revision that would have removed the rules of
 * AGAINST. */
function addVerdict(record: RolloutRecord, text: string): RolloutRecord {
  const [outcome, id = '', against] = text.split('/');
  return withVerdict(record, {
    ...{ outcome: outcome as 'held_back', revision: id, content: toKnown(id).content },
    ...{ reason: 'said', by: '', atMs: 1 },
    ...(against !== undefined && { against: toKnown(against).content }),
  });
}

/** Initially revision a is in force and the newest, and was given to all workers at once. */
class Scene {
  rollsOut = true;
  reportsOutcomes = false;
  leads = true;
  mayWrite = true;
  isWritable = true;
  inForce: SnapshotState['inForce'] = toInForce('a', true);
  newest: SnapshotState['newest'] = toNewest('a', []);
  withdrawn: SnapshotState['withdrawn'];
  record = emptyRecord;
  /** The record that other control planes write just before. */
  meanwhile: RolloutRecord | undefined;
  #memory = noMemory;

  step(): string {
    const { rollsOut, reportsOutcomes, leads, mayWrite, record, inForce, newest, withdrawn } = this;
    const reach = { reachable: true, lastSuccessMs: 0, failingSinceMs: undefined };
    const { memory, effects } = remember(this.#memory, {
      ...{ rollsOut, reportsOutcomes, leads, mayWrite, record, wallMs: 1_000_000_000_000 },
      snapshots: {
        store: { ...reach, lastError: undefined, revision: undefined },
        ...{ newest, inForce, trial: undefined, withdrawn, stale: undefined },
        counts: { accepted: 0, refused: 0, takenBack: 0 },
      },
    });
    this.#memory = memory;
    return effects.map((each) => this.#perform(each)).join(', ') || 'nothing';
  }

  #perform(each: ToRemember): string {
    if (each.kind === 'give_way') return `${each.open.revision} gives way to ${each.newest}`;
    if (each.kind === 'write') this.record = this.meanwhile ?? this.record;
    const changed = each.change(this.record);
    const isDone = changed !== undefined && (each.kind === 'stored_locally' || this.isWritable);
    if (isDone) this.record = changed;
    else if (each.kind === 'write' && each.otherwise) {
      this.#memory = { ...this.#memory, compared: undefined };
    }
    return isDone ? (each.kind === 'write' ? 'written' : 'kept here') : 'not written';
  }

  /** Shows the record: the contents in force, the last one first; the outcomes of revisions in brackets; their
   * verdicts. `?` stands for a revision whose content is not known. */
  show(): string {
    const { inForce, outcomes = [], verdicts } = this.record;
    const became = outcomes.map(
      ({ revisions, kind, reason, atMs }) =>
        `${revisions} ${kind} ${kind === 'in_force' ? atMs : reason}`,
    );
    const words = verdicts.map(
      (each) =>
        `; ${each.revision}${each.content === '' ? '?' : ''} ${each.outcome}, ${each.reason}, beside ${each.against ?? 'nothing'}`,
    );
    const ids = inForce.map(({ revision, content }) =>
      content === '' ? `${revision}?` : revision,
    );
    return `${ids.join() || '-'} (${became.join(', ')})${words.join('')}`;
  }
}

/** The words of a poll, as `NAME` or `NAME=VALUE`, in any number; they apply to later polls, too. */
const commands: Readonly<Record<string, (text: string, scene: Scene) => Partial<Scene>>> = {
  'no-rollout': () => ({ rollsOut: false }),
  told: () => ({ reportsOutcomes: true }),
  follows: () => ({ leads: false }),
  leads: () => ({ leads: true }),
  error: () => ({ mayWrite: false }),
  unwritable: () => ({ isWritable: false }),
  fine: () => ({ mayWrite: true, isWritable: true }),
  /** The revision in force, as `REVISION@SINCE` in milliseconds: given to all at once, or retained from an earlier
   * process. */
  'at-once': (text) => ({ inForce: toInForce(text, true) }),
  kept: (text) => ({ inForce: toInForce(text, false) }),
  'not-in-force': () => ({ inForce: undefined }),
  /** The newest revision. */
  newest: (text) => ({ newest: toNewest(text, []) }),
  held: (text) => ({ newest: toNewest(text, [heldBack]) }),
  invalid: (text) => ({ newest: toNewest(text, errors) }),
  'no-newest': () => ({ newest: undefined }),
  withdrawn: (revision) => ({ withdrawn: { revision, by: 'a' } }),
  record: (text) => ({ record: toRecord(text) }),
  word: (text, { record }) => ({ record: addVerdict(record, text) }),
  /** Writes the record as the previous version did, without contents: the first revision is in force, the second one
   * taken back. */
  before(text) {
    const [inForce = '', takenBack = ''] = text.split(',');
    const verdict = {
      outcome: 'taken_back',
      reason: 'said',
      by: '',
      atMs: 0,
      content: '',
    } as const;
    const verdicts = takenBack === '' ? [] : [{ ...verdict, revision: takenBack }];
    return { record: { ...emptyRecord, verdicts, inForce: [{ revision: inForce, content: '' }] } };
  },
  open: (_, { record }) => ({ record: { ...record, rollout: open } }),
  meanwhile: (text) => ({ meanwhile: toRecord(text) }),
  'meanwhile-word': (text, { meanwhile = emptyRecord }) => ({
    meanwhile: addVerdict(meanwhile, text),
  }),
};

/** One poll, or `COUNT *` of them. */
testLines(test, new URL('remembering.txt', import.meta.url), (given) => {
  const scene = new Scene();
  const came = given.split(' ; ').map((step) => {
    const [, count = '1', words = ''] = /^(?:(\d+) \* ?)?(.*)$/.exec(step) ?? [];
    for (const word of words.split(' ').filter((each) => each !== '-')) {
      const [name = '', value = ''] = word.split('=');
      const command = commands[name];
      if (command === undefined) throw new Error(`there is no word '${name}'`);
      Object.assign(scene, command(value, scene));
    }
    return [...new Set(Array.from({ length: Number(count) }, () => scene.step()))].join(' then ');
  });
  return `${came.join(' ; ')}: ${scene.show()}`;
});
