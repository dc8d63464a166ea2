// Asks workers about counters: which of them have to be asked, and what they answer, within a deadline.

import type { Clock } from '../../shared/clock.ts';
import type {
  CounterMessage,
  CountersAnswerMessage,
  HelloMessage,
  ToWorkerMessage,
} from '../../shared/wire/fleet-messages.ts';
import { toCount } from './worker-figures.ts';

export interface CountersQuestion {
  readonly domain: string;
  readonly descriptors: readonly (readonly { readonly key: string; readonly value: string }[])[];
  readonly reset: boolean;
  /** The node id of the workers to ask; undefined for all that have counters of their own, and one for those that
   * count together. */
  readonly worker: string | undefined;
}

export interface CountersResult {
  readonly answers: readonly WorkerAnswer[];
  /** Workers with counters of their own that were not asked, because there are too many. */
  readonly notAsked: number;
}

export interface WorkerAnswer {
  readonly worker: string;
  readonly address: string;
  /** Equal for workers that count together with the same rules, also those of other control planes. */
  readonly group: string;
  /** How many workers count together with it, itself included. */
  readonly together: number;
  /** Why there is no answer, for people. */
  readonly problem: string | undefined;
  readonly counters: readonly CounterMessage[];
}

/** A link that can be asked. */
export interface AskedWorker {
  readonly hello: HelloMessage;
  readonly address: string;
  /** Of the rules in force. */
  readonly version: string;
  send(message: ToWorkerMessage): void;
}

export interface Counters {
  ask(workers: readonly AskedWorker[], question: CountersQuestion): Promise<CountersResult>;
  /** An answer that has come, of whichever worker. */
  take(worker: AskedWorker, answer: CountersAnswerMessage): void;
}

/** A worker answers within a second, and a peer's question waits for two. */
const deadlineMs = 1_500;
const maxAlone = 100;
/** Limits of 20 descriptors, each with a list. */
const maxCounters = 400;
const maxTextLength = 4_096;

export function createCounters(clock: Clock): Counters {
  const open = new Map<
    number,
    { readonly worker: AskedWorker; readonly settle: (answer: CountersAnswerMessage) => void }
  >();
  let lastId = 0;

  async function askOne(
    [worker, ...others]: Group,
    { domain, descriptors, reset }: CountersQuestion,
  ): Promise<WorkerAnswer> {
    // Numbers on the wire are 32 bits long.
    lastId = (lastId + 1) % 2 ** 32;
    const id = lastId;
    const answered = Promise.withResolvers<CountersAnswerMessage>();
    const cancel = clock.after(deadlineMs, () =>
      answered.resolve({ id, problem: `no answer within ${deadlineMs / 1000}s`, counters: [] }),
    );
    open.set(id, { worker, settle: answered.resolve });
    const asked = { domain, descriptors: descriptors.map((entries) => ({ entries })) };
    worker.send({ counters: { id, reset, ...asked } });
    const { problem, counters } = await answered.promise;
    cancel();
    open.delete(id);
    if (reset && problem === '') for (const other of others) other.send({ forget: asked });
    return {
      worker: worker.hello.nodeId,
      address: worker.address,
      group: nameGroup(worker),
      together: 1 + others.length,
      problem: problem === '' ? undefined : problem.slice(0, maxTextLength),
      counters: counters
        .slice(0, maxCounters)
        .filter(({ descriptor }) => descriptor < descriptors.length)
        .map(toCounter),
    };
  }

  return {
    async ask(workers, question) {
      const asked = workers.filter(
        ({ hello }) => question.worker === undefined || hello.nodeId === question.worker,
      );
      const groups = groupWorkers(asked, workers, question.reset);
      const now = groups.slice(0, maxAlone);
      return {
        answers: await Promise.all(now.map((group) => askOne(group, question))),
        notAsked: groups.length - now.length,
      };
    },
    take(worker, answer) {
      const question = open.get(answer.id);
      // Only the one that was asked may answer.
      if (question?.worker === worker) question.settle(answer);
    },
  };
}

/** Workers with the same counters, the one that is asked first. */
type Group = readonly [AskedWorker, ...AskedWorker[]];

/** `asked` are among `all`. */
function groupWorkers(
  asked: readonly AskedWorker[],
  all: readonly AskedWorker[],
  reset: boolean,
): Group[] {
  const groups = new Map<string, Group>();
  for (const worker of asked) {
    const { hello } = worker;
    const name = nameGroup(worker);
    const first = groups.get(name)?.[0];
    // One that may not reset is asked only where there is none that may.
    if (first !== undefined && (!reset || first.hello.allowsReset || !hello.allowsReset)) continue;
    groups.set(name, [
      worker,
      ...all.filter((each) => each !== worker && nameGroup(each) === name),
    ]);
  }
  return [...groups.values()];
}

/** Those that count together with the same rules. */
function nameGroup({ hello, version }: AskedWorker): string {
  return hello.countsAlone ? hello.instance : `${hello.agreement} ${version}`;
}

function toCounter(given: CounterMessage): CounterMessage {
  const {
    descriptor,
    problem = '',
    rule = '',
    used,
    limit,
    window = '',
    secondsUntilReset,
  } = given;
  return {
    descriptor,
    problem: problem.slice(0, maxTextLength),
    rule: rule.slice(0, maxTextLength),
    used: toCount(used),
    limit: toCount(limit),
    window: window.slice(0, maxTextLength),
    secondsUntilReset: toCount(secondsUntilReset),
  };
}
