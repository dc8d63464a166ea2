import test from 'ava';
import type { HelloMessage, ToWorkerMessage } from '../../shared/wire/fleet-messages.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { type AskedWorker, createCounters } from './counters.ts';

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
};
const idOf = ({ got }: FakeWorker) => got[0]?.counters?.id ?? -1;

test('one of those that count together is asked, and each that counts alone', async (t) => {
  const counters = createCounters(createManualClock());
  const workers = [
    toWorker('a'),
    toWorker('b'),
    toWorker('other-rules', {}, 'v2'),
    toWorker('other-store', { agreement: 'b' }),
    toWorker('alone-1', { countsAlone: true }),
    toWorker('alone-2', { countsAlone: true }),
  ];
  const asking = counters.ask(workers, question);
  t.deepEqual(
    workers.filter(({ got }) => got.length > 0).map(({ hello }) => hello.nodeId),
    ['a', 'other-rules', 'other-store', 'alone-1', 'alone-2'],
  );
  for (const worker of workers) {
    counters.take(worker, { id: idOf(worker), problem: '', counters: [counter] });
  }
  const { answers, notAsked } = await asking;
  t.is(notAsked, 0);
  t.deepEqual(
    answers.map(({ worker, together }) => [worker, together]),
    [
      ['a', 2],
      ['other-rules', 1],
      ['other-store', 1],
      ['alone-1', 1],
      ['alone-2', 1],
    ],
  );
  t.deepEqual(answers[0]?.counters, [counter]);
});

test('after a reset all that count together forget, and one that forbids it is not asked first', async (t) => {
  const counters = createCounters(createManualClock());
  const forbids = toWorker('forbids', { allowsReset: false });
  const [allows, third] = [toWorker('allows'), toWorker('third')];
  const workers = [forbids, allows, third];
  const asking = counters.ask(workers, { ...question, reset: true });
  t.like(allows.got, [{ counters: { reset: true } }]);
  counters.take(allows, { id: idOf(allows), problem: '', counters: [{ ...counter, used: 0 }] });
  await asking;
  for (const { got } of [forbids, third]) {
    t.deepEqual(got, [
      { forget: { domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] } },
    ]);
  }
  const failing = counters.ask(workers, { ...question, reset: true });
  const { id = -1 } = allows.got.at(-1)?.counters ?? {};
  counters.take(allows, { id, problem: 'the store is away', counters: [] });
  t.is((await failing).answers[0]?.problem, 'the store is away');
  t.is(third.got.length, 1);
});

test('a worker that is silent, answers for another, or says too much keeps nobody', async (t) => {
  const clock = createManualClock();
  const counters = createCounters(clock);
  const [silent, liar] = [
    toWorker('silent', { countsAlone: true }),
    toWorker('liar', { countsAlone: true }),
  ];
  const asking = counters.ask([silent, liar], question);
  counters.take(liar, { id: idOf(silent), problem: '', counters: [counter] });
  const absurd = { ...counter, used: Number.NaN, limit: -1, rule: 'x'.repeat(10_000) };
  counters.take(liar, {
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

test('of very many that count alone a hundred are asked, and the rest told', async (t) => {
  const clock = createManualClock();
  const workers = Array.from({ length: 130 }, (_, index) =>
    toWorker(`w-${index}`, { countsAlone: true }),
  );
  const asking = createCounters(clock).ask(workers, question);
  clock.advance(1_500);
  const { answers, notAsked } = await asking;
  t.deepEqual([answers.length, notAsked], [100, 30]);
});
