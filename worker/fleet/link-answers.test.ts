import test from 'ava';
import type { CountersAnswerMessage } from '../../shared/wire/fleet-messages.ts';
import type { CounterAccess, CountersAnswer, CountersAsked } from '../decision/counter-access.ts';
import { createLinkAnswers, type LinkAnswersDeps } from './link-answers.ts';

const entry = { key: 'k', value: 'v' };
const answered: CountersAnswer = { ok: true, counters: [] };

function setUp(given: Partial<LinkAnswersDeps> = {}, answer = async () => answered) {
  const asked: CountersAsked[] = [];
  const forgotten: CountersAsked[] = [];
  const access: CounterAccess = {
    ask(question) {
      asked.push(question);
      return answer();
    },
    forget: (question) => void forgotten.push(question),
  };
  const answers = createLinkAnswers({
    counters: () => access,
    allowsReset: true,
    isAlone: false,
    ...given,
  });
  const sent: { readonly answer: CountersAnswerMessage; readonly onSent: () => void }[] = [];
  const receive = (message: Parameters<typeof answers.receive>[0]) =>
    answers.receive(message, (each, onSent) => void sent.push({ answer: each, onSent }));
  const question = (id: number, entries = [entry], count = 1) => ({
    id,
    domain: 'd',
    descriptors: Array.from({ length: count }, () => ({ entries })),
    reset: false,
  });
  /** Waits until immediate answers are sent. */
  const settle = () => new Promise(setImmediate);
  return { receive, question, settle, asked, forgotten, sent };
}

test('at most eight questions are open, even while their answers are not read', async (t) => {
  const { receive, question, settle, asked, sent } = setUp();
  for (let id = 0; id < 1_000; id++) receive({ counters: question(id) });
  await settle();
  t.is(asked.length, 8);
  t.deepEqual(
    sent.map(({ answer }) => answer.id),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
  receive({ counters: question(1_000) });
  await settle();
  t.is(asked.length, 8);
  sent[0]?.onSent();
  receive({ counters: question(1_001) });
  await settle();
  t.is(sent.at(-1)?.answer.id, 1_001);
});

test('a question that is too long is refused, and drops nothing from the cache', async (t) => {
  const { receive, question, settle, asked, forgotten, sent } = setUp();
  const long = [
    question(1, [entry], 21),
    question(2, Array(33).fill(entry)),
    question(3, [{ key: 'k', value: 'v'.repeat(5_000) }]),
    { ...question(4), domain: 'd'.repeat(5_000) },
  ];
  for (const counters of long) {
    receive({ counters });
    receive({ forget: counters });
  }
  await settle();
  t.deepEqual(
    sent.map(({ answer }) => [answer.id, answer.problem]),
    [1, 2, 3, 4].map((id) => [id, 'the question is too long']),
  );
  t.deepEqual([asked, forgotten], [[], []]);
  receive({ forget: question(5) });
  t.is(forgotten.length, 1);
});

test('a question that cannot be answered gets the reason', async (t) => {
  const reset = { reset: true };
  const cases: [Partial<LinkAnswersDeps>, object, string][] = [
    [
      { allowsReset: false },
      reset,
      'CONFIG_FLEET_LINK_RESET=false: this worker resets no counters',
    ],
    [{ isAlone: true }, {}, 'its processes count by themselves, in memory'],
    [{ counters: () => undefined }, {}, 'it is starting'],
  ];
  for (const [given, more, problem] of cases) {
    const { receive, question, settle, asked, sent } = setUp(given);
    receive({ counters: { ...question(1), ...more } });
    await settle();
    t.deepEqual(sent[0]?.answer, { id: 1, problem, counters: [] });
    t.deepEqual(asked, []);
  }
  const away = setUp({}, async () => ({ ok: false, problem: 'the store is away' }));
  away.receive({ counters: away.question(1) });
  await away.settle();
  t.is(away.sent[0]?.answer.problem, 'the store is away');
});
