// The contract of a process that is killed at any effect on the record, run on each place where that can happen: the
// next process finds the state before or after the effect.
import type { ExecutionContext } from 'ava';
import { type OwnText, OwnTextFile } from '../../control-plane/server/record/own-text.ts';
import {
  type RolloutRecord,
  verdictOf,
  withEnd,
  withVerdict,
} from '../../control-plane/server/record/record.ts';
import { RecordKeeper } from '../../control-plane/server/record/record-keeper.ts';
import type { ChangeRecord } from '../../control-plane/server/record/record-state.ts';
import type { SharedText } from '../../control-plane/server/store/shared-text.ts';
import type { Log } from '../../shared/log.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { sharedTiming } from '../support/simulated-fleet.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import type { DeclareTest } from './shared-text.ts';

/** Such as that of a `SharedTextKind`; if the text is undefined, there is only the state directory. */
export interface KilledKind {
  readonly name: string;
  prepare(t: ExecutionContext): { open(): SharedText | undefined };
}

/** `before`: the effect does not happen. `unanswered`: it happens, and its result is lost. `least`: the minimum number
 * of kills in each place. */
const moments = [
  { moment: 'before', least: 7 },
  { moment: 'unanswered', least: 6 },
] as const;
type Moment = (typeof moments)[number]['moment'];

const rollout = { id: 'one', revision: 'a'.repeat(40), content: 'a', outcome: 'running' } as const;
const end = { reason: 'errors', by: '', atMs: 1 };

/** The work to be done, based on the record: each process continues where the record ends. */
const changes: readonly ChangeRecord[] = [
  (record) => {
    const none = { step: 0, chosen: [], whole: [], reason: '' };
    return { ...record, rollout: { ...rollout, ...none } };
  },
  (record) => withEnd(record, 'taken_back', end),
  (record) => withVerdict(record, { ...end, revision: 'z', content: 'z', outcome: 'held_back' }),
];

function countDone(record: RolloutRecord): number {
  if (record.rollout === null) return 0;
  if (record.rollout.outcome === 'running') return 1;
  return verdictOf(record, 'z', 'z') === undefined ? 2 : 3;
}

/** A process that ends at its `last`-th effect. */
class Life {
  readonly death = Promise.withResolvers<void>();
  isOver = false;
  readonly #last: number;
  readonly #moment: Moment;
  #reached = 0;
  /** Operations that it has begun, whose results a killed process never receives. */
  readonly begun: Promise<unknown>[] = [];

  constructor(last: number, moment: Moment) {
    this.#last = last;
    this.#moment = moment;
  }

  /** Undefined when the process was killed before the effect, or before it could read the result. */
  perform<Result>(effect: () => Result, isRead = false): Result | undefined {
    if (this.isOver) return undefined;
    // A kill after a read is the same as one before it.
    if (isRead && this.#moment === 'unanswered') return effect();
    if (++this.#reached < this.#last) return effect();
    if (this.#moment === 'unanswered') this.begun.push(Promise.resolve(effect()));
    this.isOver = true;
    this.death.resolve();
    return undefined;
  }
}

const never = new Promise<never>(() => {});

function mortalText(life: Life, text: SharedText): SharedText {
  return {
    description: text.description,
    read: () => life.perform(() => text.read(), true) ?? never,
    swap: (...given) => life.perform(() => text.swap(...given)) ?? never,
    setAside: (version) => life.perform(() => text.setAside(version)) ?? never,
    close: () => text.close(),
  };
}

function mortalOwn(life: Life, own: OwnText): OwnText {
  return {
    path: own.path,
    read: () => life.perform(() => own.read(), true) ?? never,
    setAside: () => life.perform(() => own.setAside()) ?? never,
    write: (record) => life.perform(() => own.write(record)) ?? never,
    save: (record) => void life.perform(() => own.save(record)),
    restore: () => own.restore(),
    settled: () => own.settled(),
  };
}

function mortalLog(life: Life, log: Log): Log {
  const of = (level: 'debug' | 'info' | 'notice' | 'warning' | 'error') => (text: string) =>
    void life.perform(() => log[level](text));
  const [debug, info, notice, warning, error] = (
    ['debug', 'info', 'notice', 'warning', 'error'] as const
  ).map(of);
  return { ...log, debug, info, notice, warning, error } as Log;
}

export function testRecordKills(test: DeclareTest, { name, prepare }: KilledKind): void {
  for (const { moment, least } of moments) {
    test(`${name}: a process that is killed at any effect, ${moment}, leaves the record before it or after it`, async (t) => {
      let kills = 0;
      for (let last = 1; ; last++) {
        const target = prepare(t);
        const folder = createTemporaryFolder(t);
        const log = createRecordedLog();
        const clock = createManualClock();
        const owns: OwnText[] = [];
        const settled = () => Promise.all(owns.map((own) => own.settled()));
        const open = (life: Life, shared: SharedText | undefined) => {
          const own = new OwnTextFile({ stateDirectory: folder, store: name, isInGit: false }, log);
          return new RecordKeeper({
            shared: shared && mortalText(life, shared),
            own: mortalOwn(life, own),
            id: `process-${last}-${owns.push(own)}`,
            ...{ timing: sharedTiming, steps: '', name: 'a', clock, log: mortalLog(life, log) },
            onOutcome() {},
          });
        };
        /** The number of changes that it knows to be on record. */
        let known = 0;
        async function live(life: Life, keeper: RecordKeeper): Promise<void> {
          await keeper.start();
          for (;;) {
            if (life.isOver) return;
            known = countDone(keeper.record);
            const next = changes[known];
            if (next === undefined) break;
            await keeper.write(next);
          }
          await keeper.handOver();
        }
        const life = new Life(last, moment);
        const killed = open(life, target.open());
        await Promise.race([live(life, killed), life.death.promise]);
        if (!life.isOver) {
          t.is(known, changes.length);
          await killed.stop();
          await settled();
          break;
        }
        kills++;
        // A killed process writes nothing after the next one has started.
        await Promise.allSettled([...life.begun, settled()]);
        const before = known;
        const rest = new Life(Number.POSITIVE_INFINITY, moment);
        const shared = target.open();
        const next = open(rest, shared);
        await next.start();
        const what = `killed at effect ${last}`;
        t.true([before, before + 1].includes(countDone(next.record)), what);
        await live(rest, next);
        t.is(known, changes.length, what);
        const other = open(rest, shared);
        await other.start();
        t.is(countDone(other.record), changes.length, what);
        t.is(other.record.outcomes.length, 2, what);
        t.deepEqual(log.lines, [], what);
        await Promise.all([next.stop(), other.stop()]);
        await settled();
      }
      t.true(kills >= least, `${kills} kills`);
      t.log(`${kills} kills`);
    });
  }
}
