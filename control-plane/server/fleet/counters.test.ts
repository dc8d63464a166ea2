import test from 'ava';
import type {
  CountersAnswerMessage,
  HelloMessage,
  ToWorkerMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { type AskedWorker, Counters } from './counters.ts';

interface FakeWorker extends AskedWorker {
  readonly got: ToWorkerMessage[];
}

function toWorker(id: string, given: Partial<HelloMessage> = {}, version = 'v1'): FakeWorker {
  const got: ToWorkerMessage[] = [];
  return {
    hello: {
      nodeId: id,
      instance: `${id}-instance`,
      agreement: 'a',
      countsAlone: false,
      allowsReset: true,
      values: 2,
      ...given,
    },
    address: `${id}:1`,
    version,
    got,
    send: (message) => void got.push(message),
  };
}

const question = {
  domain: 'd',
  descriptors: [[{ key: 'k', value: 'v' }]],
  reset: false,
  worker: undefined,
};
const counter = {
  descriptor: 0,
  problem: '',
  rule: 'd.k',
  used: 3,
  limit: 5,
  window: 'day',
  secondsUntilReset: 9,
  shadowMode: false,
};
const idOf = ({ got }: FakeWorker) => got[0]?.counters?.id ?? -1;

type Answer = Partial<Omit<CountersAnswerMessage, 'id'>>;
interface Store {
  used: number;
}

/** The answer of a worker that does what the request asks for. */
function honest(store: Store, reset: boolean): Answer {
  if (reset) store.used = 0;
  return { counters: [{ ...counter, used: store.used }] };
}

/** Confirms that the worker has done it. */
function lying(_store: Store, reset: boolean): Answer {
  return { counters: [{ ...counter, used: reset ? 0 : counter.used }] };
}

/** Workers that share a store and answer at once, and the questions that they received. */
function startGroup(answers: Readonly<Record<string, typeof honest>>, store: Store = { used: 3 }) {
  const counters = new Counters(createManualClock());
  const asked: string[] = [];
  const workers = Object.entries(answers).map(([id, answerOf]) => {
    const worker: AskedWorker = {
      ...toWorker(id, { allowsReset: !id.startsWith('forbids') }),
      send({ counters: given, forget }) {
        asked.push(`${id} ${forget != null ? 'forget' : given?.reset ? 'reset' : 'get'}`);
        if (given == null) return;
        const answer = { id: given.id, problem: '', counters: [], ...answerOf(store, given.reset) };
        queueMicrotask(() => counters.receive(worker, answer));
      },
    };
    return worker;
  });
  const ask = (reset: boolean, worker?: string, descriptors = question.descriptors) =>
    counters.ask(workers, { ...question, reset, worker, descriptors });
  return { ask, asked };
}

test('two of those that count together are asked, and each that counts alone', async (t) => {
  const counters = new Counters(createManualClock());
  const workers = [
    toWorker('a'),
    toWorker('b'),
    toWorker('c'),
    toWorker('other-rules', {}, 'v2'),
    toWorker('other-store', { agreement: 'b' }),
    toWorker('alone-1', { countsAlone: true }),
    toWorker('alone-2', { countsAlone: true }),
  ];
  const asking = counters.ask(workers, question);
  const asked = workers.filter(({ got }) => got.length > 0);
  for (const worker of asked)
    counters.receive(worker, { id: idOf(worker), problem: '', counters: [counter] });
  const { answers, notAsked } = await asking;
  t.is(notAsked, 0);
  t.deepEqual(
    answers.map(({ worker, together }) => [worker, together]),
    [
      ['a', 3],
      ['b', 3],
      ['other-rules', 1],
      ['other-store', 1],
      ['alone-1', 1],
      ['alone-2', 1],
    ],
  );
  t.deepEqual(answers[0]?.counters, [{ ...counter, problem: null }]);
  const { ask, asked: named } = startGroup({ a: honest, b: honest });
  await ask(false, 'b');
  t.deepEqual(named, ['b get']);
});

test('a reset is read again through another worker, and one that forbids it is not asked for it', async (t) => {
  const { ask, asked } = startGroup({ forbids: honest, allows: honest, third: honest });
  const { answers } = await ask(true);
  t.deepEqual(asked, [
    'forbids get',
    'allows reset',
    'forbids forget',
    'third forget',
    'forbids get',
  ]);
  t.like(answers, [{ worker: 'allows', together: 3, problem: null, confirmedBy: 'another' }]);
  t.is(answers[0]?.counters[0]?.used, 0);
});

test('a reset that only the same worker can confirm is marked', async (t) => {
  const { ask, asked } = startGroup({ only: honest });
  t.like((await ask(true)).answers, [{ problem: null, confirmedBy: 'itself' }]);
  t.deepEqual(asked, ['only get', 'only reset', 'only get']);
});

test('a worker that reports a reset of what another still reads has reset nothing', async (t) => {
  const { ask } = startGroup({ liar: lying, honest });
  const { answers } = await ask(true);
  t.is(answers[0]?.problem, 'worker honest reads 3 hits of rule d.k after the reset, and 3 before');
  t.is(answers[0]?.confirmedBy, null);
  t.is(answers[0]?.counters[0]?.used, 3);
  t.is((await ask(true, 'honest')).answers[0]?.problem?.replace(/ reads .*/, ''), 'worker liar');
});

test('where one of several descriptors has no counter, none is reset', async (t) => {
  const partly = (store: Store, reset: boolean) => {
    const { counters: [known] = [] } = honest(store, reset);
    return { counters: [known ?? counter, { ...counter, descriptor: 1, problem: 'no rule' }] };
  };
  const store = { used: 3 };
  const { ask } = startGroup({ a: partly, b: partly }, store);
  const two = [...question.descriptors, [{ key: 'unknown', value: 'v' }]];
  const { answers } = await ask(true, undefined, two);
  t.is(answers[0]?.problem, 'nothing is reset: no rule');
  t.is(store.used, 3);
});

test('hits that come while a counter is reset do not hide it', async (t) => {
  const busy = (store: Store, reset: boolean) => {
    const answer = honest(store, reset);
    store.used += 2;
    return answer;
  };
  t.is((await startGroup({ a: busy, b: busy }).ask(true)).answers[0]?.confirmedBy, 'another');
  const fresh = startGroup({ a: busy, b: busy }, { used: 0 });
  t.is((await fresh.ask(true)).answers[0]?.confirmedBy, 'another');
});

test('a reset is not confirmed by a worker that fails, knows other counters, or none', async (t) => {
  const problemOf = async (...replies: readonly Answer[]) => {
    const answers = [...replies];
    const reader = () => answers.shift() ?? {};
    const { ask } = startGroup({ a: honest, reader });
    const [answer] = (await ask(true)).answers;
    t.is(answer?.confirmedBy, null);
    return answer?.problem;
  };
  const used = (count: number) => ({ counters: [{ ...counter, used: count }] });
  t.is(
    await problemOf(used(3), { problem: 'the store is away' }),
    'worker reader was asked after the reset: the store is away',
  );
  t.is(
    await problemOf({ problem: 'the store is away' }, used(1)),
    'worker reader reads 1 hit of rule d.k after the reset, and an unknown number before',
  );
  const other = { counters: [{ ...counter, limit: 6, used: 0 }] };
  t.is(await problemOf(other, other), 'worker reader has other counters');
  t.is(await problemOf({}, {}), 'worker reader has other counters');
});

test('where no rule counts, nothing is confirmed and the reason is shown', async (t) => {
  const none = () => ({ counters: [{ descriptor: 0, problem: 'no rule' }] });
  const { answers } = await startGroup({ a: none, b: none }).ask(true);
  t.like(answers, [{ problem: null, confirmedBy: null }]);
  t.is(answers[0]?.counters[0]?.problem, 'no rule');
});

test('a counter that a worker could not reset is not dropped by the other workers', async (t) => {
  const failing = (_store: Store, reset: boolean): Answer =>
    reset ? { problem: 'the store is away' } : {};
  const { ask, asked } = startGroup({ failing, other: honest });
  t.like((await ask(true)).answers, [{ problem: 'the store is away', confirmedBy: null }]);
  t.deepEqual(asked, ['other get', 'failing reset']);
});

test('a reset that is answered slowly or not at all takes three seconds at most', async (t) => {
  const clock = createManualClock();
  const counters = new Counters(clock);
  const [slow, silent] = [toWorker('slow'), toWorker('silent')];
  const asking = counters.ask([slow, silent], { ...question, reset: true });
  t.is(silent.got.length, 1);
  clock.advance(1_000);
  await eventually('the reset is asked for', () => slow.got.length === 1);
  clock.advance(900);
  counters.receive(slow, { id: idOf(slow), problem: '', counters: [{ ...counter, used: 0 }] });
  await eventually('the other one is asked again', () => silent.got.length === 3);
  clock.advance(1_000);
  t.is(
    (await asking).answers[0]?.problem,
    'worker silent was asked after the reset: no answer within 1s',
  );
  const failing = counters.ask([slow], { ...question, reset: true });
  clock.advance(1_000);
  await eventually('the reset is asked for', () => slow.got.length === 3);
  clock.advance(1_000);
  t.is((await failing).answers[0]?.problem, 'no answer within 1s');
  t.is(clock.pending, 0);
});

test('a worker that is silent, answers for another, or reports too much blocks no caller', async (t) => {
  const clock = createManualClock();
  const counters = new Counters(clock);
  const [silent, liar] = [
    toWorker('silent', { countsAlone: true }),
    toWorker('liar', { countsAlone: true }),
  ];
  const asking = counters.ask([silent, liar], question);
  counters.receive(liar, { id: idOf(silent), problem: '', counters: [counter] });
  const absurd = { ...counter, used: Number.NaN, limit: -1, rule: 'x'.repeat(10_000) };
  counters.receive(liar, {
    id: idOf(liar),
    problem: '',
    counters: [{ ...counter, descriptor: 7 }, ...Array(5_000).fill(absurd)],
  });
  clock.advance(1_500);
  const { answers } = await asking;
  t.is(answers[0]?.problem, 'no answer within 1.5s');
  t.is(answers[1]?.counters.length, 399);
  t.like(answers[1]?.counters[0], { used: 0, limit: 0 });
  t.is(answers[1]?.counters[0]?.rule?.length, 4_096);
  t.is(clock.pending, 0);
});

test('a hundred of very many workers that count alone are asked, and the others are named', async (t) => {
  const clock = createManualClock();
  const workers = Array.from({ length: 130 }, (_, index) =>
    toWorker(`w-${index}`, { countsAlone: true }),
  );
  const asking = new Counters(clock).ask(workers, question);
  clock.advance(1_500);
  const { answers, notAsked } = await asking;
  t.deepEqual([answers.length, notAsked], [100, 30]);
});
