// Asks workers about counters: chooses the workers, reads their answers within a deadline, and determines whether a
// reset is confirmed.

import type { Clock } from '../../../shared/clock.ts';
import { toCountText } from '../../../shared/count-text.ts';
import type {
  CounterMessage,
  CountersAnswerMessage,
  HelloMessage,
  ToWorkerMessage,
} from '../../../shared/wire/fleet-messages.ts';
import type { AnswerJson, CounterJson, OwnCounters } from './counter-answers.ts';
import { toCount } from './worker-figures.ts';

export interface CountersQuestion {
  readonly domain: string;
  readonly descriptors: readonly (readonly { readonly key: string; readonly value: string }[])[];
  readonly reset: boolean;
  /** The node id of the workers to ask; undefined: all that have counters of their own, and two of each group that
   * counts together. */
  readonly worker?: string | undefined;
}

/** A link that can be asked. */
export interface AskedWorker {
  readonly hello: HelloMessage;
  readonly address: string;
  /** The version of the rules in force. */
  readonly version: string;
  send(message: ToWorkerMessage): void;
}

/** A worker answers within a second, even if its store does not. */
const readingMs = 1_500;
/** For each of the three consecutive questions of a reset. */
const resetStepMs = 1_000;
/** Number of workers to ask of those that count together: a single one could report anything. */
const askedTogether = 2;
const maxGroups = 100;
/** Limits of 20 descriptors, each with a list. */
const maxCounters = 400;
const maxTextLength = 4_096;

export class Counters {
  readonly #clock: Clock;
  readonly #open = new Map<
    number,
    { readonly worker: AskedWorker; readonly settle: (answer: CountersAnswerMessage) => void }
  >();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with two workers of each group that counts together, if two can be asked; after a reset, with one. */
  async ask(workers: readonly AskedWorker[], question: CountersQuestion): Promise<OwnCounters> {
    const groups = groupWorkers(workers, question.worker);
    const now = groups.slice(0, maxGroups);
    const answers = await Promise.all(
      now.map((group) =>
        question.reset ? this.#reset(group, question) : this.#read(group, question),
      ),
    );
    return { answers: answers.flat(), notAsked: groups.length - now.length };
  }

  /** An answer that has arrived, from whichever worker. */
  receive(worker: AskedWorker, answer: CountersAnswerMessage): void {
    const question = this.#open.get(answer.id);
    // Only the worker that was asked can answer.
    if (question?.worker === worker) question.settle(answer);
  }

  async #askOne(
    worker: AskedWorker,
    { domain, descriptors, reset }: CountersQuestion,
    timeoutMs: number,
  ): Promise<Reply> {
    // Numbers in the protocol have 32 bits.
    this.#lastId = (this.#lastId + 1) % 2 ** 32;
    const id = this.#lastId;
    const answered = Promise.withResolvers<CountersAnswerMessage>();
    const seconds = Math.round(timeoutMs / 100) / 10;
    const cancel = this.#clock.after(timeoutMs, () =>
      answered.resolve({ id, problem: `no answer within ${seconds}s`, counters: [] }),
    );
    this.#open.set(id, { worker, settle: answered.resolve });
    worker.send({ counters: { id, reset, ...toAsked({ domain, descriptors }) } });
    const { problem, counters } = await answered.promise;
    cancel();
    this.#open.delete(id);
    return {
      problem: problem.slice(0, maxTextLength) || null,
      counters: counters
        .slice(0, maxCounters)
        .filter(({ descriptor }) => descriptor < descriptors.length)
        .map(toCounter),
    };
  }

  #read({ asked, all }: Group, question: CountersQuestion): Promise<AnswerJson[]> {
    return Promise.all(
      asked.slice(0, askedTogether).map(async (worker) => ({
        ...describe(worker, all),
        ...(await this.#askOne(worker, question, readingMs)),
      })),
    );
  }

  /** Resets through one worker, and reads through another one whether the counters are reset. */
  async #reset({ asked, all }: Group, question: CountersQuestion): Promise<AnswerJson[]> {
    // A worker that is not allowed to reset is asked only if no worker is.
    const worker = asked.find(({ hello }) => hello.allowsReset) ?? asked[0];
    if (worker === undefined) return [];
    const others = all.filter((each) => each !== worker);
    const reader = others[0] ?? worker;
    const reading = { ...question, reset: false };
    const before = await this.#askOne(reader, reading, resetStepMs);
    const answer = describe(worker, all);
    // If one of several descriptors has no counter, none is reset.
    const refusal = before.counters.find(({ problem }) => problem !== null);
    if (refusal !== undefined && before.counters.some(({ problem }) => problem === null)) {
      return [{ ...answer, ...before, problem: `nothing is reset: ${refusal.problem}` }];
    }
    const resetReply = await this.#askOne(worker, question, resetStepMs);
    if (resetReply.problem !== null) return [{ ...answer, ...resetReply }];
    for (const other of others) other.send({ forget: toAsked(question) });
    const after = await this.#askOne(reader, reading, resetStepMs);
    const doubt = findDoubt({ before, resetReply, after }, question);
    if (doubt !== undefined) {
      const problem = `worker ${nameOf(reader)} ${doubt}`.slice(0, maxTextLength);
      return [{ ...answer, problem, counters: after.counters }];
    }
    const hasCounters = after.counters.some(({ problem }) => problem === null);
    const confirmedBy = reader === worker ? 'itself' : 'another';
    return [{ ...answer, ...after, confirmedBy: hasCounters ? confirmedBy : null }];
  }
}

/** The answer of a worker, cut to its bounds. */
type Reply = Pick<AnswerJson, 'problem' | 'counters'>;

/** Workers with the same counters, and those of them that can be asked. */
interface Group {
  readonly asked: AskedWorker[];
  readonly all: AskedWorker[];
}

/** The groups with a requested worker, in order of arrival. */
function groupWorkers(workers: readonly AskedWorker[], nodeId: string | undefined): Group[] {
  const groups = new Map<string, Group>();
  for (const worker of workers) {
    const name = nameGroup(worker);
    const group = groups.get(name) ?? { asked: [], all: [] };
    groups.set(name, group);
    group.all.push(worker);
    if (nodeId === undefined || worker.hello.nodeId === nodeId) group.asked.push(worker);
  }
  return [...groups.values()].filter(({ asked }) => asked.length > 0);
}

/** Equal for workers that count together with the same rules. */
function nameGroup({ hello, version }: AskedWorker): string {
  return hello.countsAlone ? hello.instance : `${hello.agreement} ${version}`;
}

function nameOf({ hello, address }: AskedWorker): string {
  return hello.nodeId || address;
}

function describe(worker: AskedWorker, all: readonly AskedWorker[]): AnswerJson {
  return {
    ...{ worker: worker.hello.nodeId, address: worker.address },
    ...{ group: nameGroup(worker), together: all.length, differs: false },
    ...{ problem: null, confirmedBy: null, counters: [] },
  };
}

function toAsked({ domain, descriptors }: Pick<CountersQuestion, 'domain' | 'descriptors'>) {
  return { domain, descriptors: descriptors.map((entries) => ({ entries })) };
}

interface ReadReset {
  readonly before: Reply;
  /** The answer of the worker that has reset the counters. */
  readonly resetReply: Reply;
  readonly after: Reply;
}

/** Why the reading after a reset does not confirm it; undefined if it does: the counter is at 0, was at 0 before, or is
 * lower than before, and then has hits that arrived since. */
function findDoubt(
  { before, resetReply, after }: ReadReset,
  { descriptors }: CountersQuestion,
): string | undefined {
  if (after.problem !== null) return `was asked after the reset: ${after.problem}`;
  const isComplete = descriptors.every((_, index) =>
    after.counters.some(({ descriptor }) => descriptor === index),
  );
  if (
    !isComplete ||
    after.counters.map(toLimit).join() !== resetReply.counters.map(toLimit).join()
  ) {
    return 'has other counters';
  }
  for (const [index, counter] of after.counters.entries()) {
    const { problem, rule, used } = counter;
    const then = before.counters[index];
    const usedBefore = then && toLimit(then) === toLimit(counter) ? then.used : undefined;
    const isReset = used === 0 || usedBefore === 0 || used < (usedBefore ?? 0);
    if (problem !== null || isReset) continue;
    const was = usedBefore === undefined ? 'an unknown number' : `${usedBefore}`;
    return `reads ${toCountText(used, 'hit')} of rule ${rule} after the reset, and ${was} before`;
  }
  return undefined;
}

/** Everything about a counter that does not change with its hits. */
function toLimit({ descriptor, problem, rule, limit, window }: CounterJson): string {
  return JSON.stringify([descriptor, problem, rule, limit, window]);
}

function toCounter(given: CounterMessage): CounterJson {
  const cut = (text = '') => text.slice(0, maxTextLength);
  return {
    descriptor: given.descriptor,
    problem: cut(given.problem) || null,
    rule: cut(given.rule),
    used: toCount(given.used),
    limit: toCount(given.limit),
    window: cut(given.window),
    secondsUntilReset: toCount(given.secondsUntilReset),
    shadowMode: given.shadowMode ?? false,
  };
}
