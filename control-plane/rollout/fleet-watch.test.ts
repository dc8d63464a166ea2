import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { RolloutOnRecord } from '../record/record.ts';
import { type GoneFacts, noPeers, type PeerFacts, type WorkerFacts } from './facts.ts';
import { gatherAgain, type Look, startWatch, watch, watchCount } from './fleet-watch.ts';
import { placeOf, toPools } from './pools.ts';

const rollout: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 0,
  chosen: ['a', 'b'].map((key) => placeOf('id', key, key)),
  whole: [],
  reason: '',
};

function worker(key: string, given: Partial<WorkerFacts> = {}): WorkerFacts {
  return {
    key,
    id: key,
    instance: key,
    name: `'${key}'`,
    pool: 0,
    isAffected: true,
    state: 'in_force',
    refusal: null,
    counted: null,
    ...given,
  };
}

/** Figures of a worker; `hasIt` follows from the series. */
function counting(
  key: string,
  series: 'old' | 'new',
  decisions: number,
  overLimit = 0,
  errors = 0,
) {
  const hasIt = series === 'new';
  return worker(key, {
    counted: { series: `${key} ${series}`, hasIt, decisions, overLimit, errors },
  });
}

const gone = (key: string, hadIt: boolean, forMs: number): GoneFacts => ({ key, hadIt, forMs });

function createViews() {
  const clock = createManualClock();
  let memory = startWatch(clock.monotonicMs());
  const look: Look = {
    open: rollout,
    pools: toPools([{ percent: 10, holdMs: 60_000 }], []),
    overLimitPoints: 10,
    own: { workers: [], gone: [] },
    hasOthers: false,
    peers: noPeers,
  };
  return {
    clock,
    countBefore(count: number) {
      memory = watchCount(memory, count, clock.monotonicMs());
    },
    leadAfterAnother() {
      memory = gatherAgain(memory, clock.monotonicMs());
    },
    /** A look after a time. */
    after(
      ms: number,
      own: readonly WorkerFacts[],
      given: Partial<Look> & { gone?: readonly GoneFacts[] } = {},
    ) {
      clock.advance(ms);
      const seen = watch(
        memory,
        { ...look, own: { workers: [...own], gone: [...(given.gone ?? [])] }, ...given },
        clock.monotonicMs(),
      );
      memory = seen.memory;
      return seen.seen;
    },
  };
}

const all = ['a', 'b', 'c', 'd'].map((key) => worker(key));
const peersWith = (workers: readonly WorkerFacts[], given: Partial<PeerFacts> = {}): PeerFacts => ({
  ...noPeers,
  workers: [...workers],
  ...given,
});

test('a worker is chosen by its place in the rollout', (t) => {
  const { after } = createViews();
  const { members } = after(0, all);
  t.deepEqual(
    members.map(({ name, isChosen, place }) => [name, isChosen, place]),
    [
      ["'a'", true, placeOf('id', 'a', 'a')],
      ["'b'", true, placeOf('id', 'b', 'b')],
      ["'c'", false, placeOf('id', 'c', 'c')],
      ["'d'", false, placeOf('id', 'd', 'd')],
    ],
  );
  const other = { ...rollout, id: 'other', chosen: [placeOf('other', 'c', 'c')] };
  t.deepEqual(
    after(1_000, all, { open: other }).members.map(({ isChosen }) => isChosen),
    [false, false, true, false],
  );
  t.true(after(1_000, all, { open: undefined }).members.every(({ isChosen }) => !isChosen));
  t.is(after(1_000, all).members[0]?.isChosen, true, 'of this rollout again');
  const unnamed = worker('x', { id: 'w', instance: null });
  t.is(after(1_000, [unnamed]).members[0]?.place, placeOf('id', 'w', undefined));
});

test('workers of a whole pool are chosen', (t) => {
  const { after } = createViews();
  const { members } = after(0, [worker('a', { pool: 1 }), worker('x', { pool: 2 })], {
    open: { ...rollout, chosen: [], whole: [2] },
  });
  t.deepEqual(
    members.map(({ isChosen, pool }) => [isChosen, pool]),
    [
      [false, 1],
      [true, 2],
    ],
  );
});

test('workers that get the same with and without it are connected, and nothing more', (t) => {
  const { after } = createViews();
  const view = after(0, [...all, worker('e', { isAffected: false })]);
  t.is(view.members.length, 4);
  t.is(view.connected, 5);
});

test('a worker at two control planes counts once, as it is here', (t) => {
  const { after } = createViews();
  const view = after(0, all, {
    peers: peersWith([worker('a', { state: 'pending' }), worker('e')]),
  });
  t.is(view.connected, 5);
  t.is(view.members.find(({ name }) => name === "'a'")?.state, 'in_force');
});

test("the view says what is not known of a peer in the peer's words", (t) => {
  const { after } = createViews();
  const unknown = 'waits for peer b';
  t.is(after(0, all, { peers: { ...noPeers, unknown } }).unknown, unknown);
});

// The hold.

test('the hold counts from when all workers of the step have it', (t) => {
  const { after } = createViews();
  const pending = [worker('a', { state: 'pending' }), ...all.slice(1)];
  t.is(after(1_000, pending).heldMs, 0);
  t.is(after(1_000, pending).heldMs, 0);
  t.is(after(1_000, all).heldMs, 0);
  t.is(after(1_000, all).heldMs, 1_000);
  t.is(after(1_500, all).heldMs, 2_500);
  t.is(after(500, pending).heldMs, 3_000, 'one that connects again does not begin it anew');
});

test('the hold does not begin while a peer is unknown', (t) => {
  const { after } = createViews();
  const peers = { ...noPeers, unknown: 'waits for peer b' };
  t.is(after(1_000, all, { peers }).heldMs, 0);
  t.is(after(1_000, all, { peers }).heldMs, 0);
  t.is(after(1_000, all).heldMs, 0);
  t.is(after(1_000, all).heldMs, 1_000);
});

test('a process that stood still has not watched: 15 seconds count as 2', (t) => {
  const { after, clock } = createViews();
  after(0, all);
  t.is(after(1_000, all).heldMs, 1_000);
  clock.stall(14_000);
  t.is(after(1_000, all).heldMs, 3_000);
  t.is(after(2_001, all).heldMs, 5_000);
});

test('each step has a hold of its own, and so has each rollout', (t) => {
  const { after } = createViews();
  after(0, all);
  t.is(after(1_000, all).heldMs, 1_000);
  t.is(after(1_000, all, { open: { ...rollout, step: 1 } }).heldMs, 0);
  t.is(after(1_000, all, { open: { ...rollout, step: 1 } }).heldMs, 1_000);
  const other = { ...rollout, id: 'other', step: 1, chosen: [placeOf('other', 'c', 'c')] };
  t.is(after(1_000, all, { open: other }).heldMs, 0);
  t.is(after(1_000, all, { open: other }).heldMs, 1_000);
});

test('a step whose workers have left holds nothing', (t) => {
  const { after } = createViews();
  after(0, all);
  after(1_000, all);
  t.is(after(1_000, all.slice(2)).heldMs, 0);
  t.is(after(1_000, all).heldMs, 0);
  t.is(after(1_000, all).heldMs, 1_000);
});

test('after another leader the hold begins anew', (t) => {
  const { after, leadAfterAnother } = createViews();
  after(0, all);
  after(1_000, all);
  leadAfterAnother();
  t.is(after(1_000, all).heldMs, 1_000);
});

// Workers that connect after a start.

test('workers are gathered when none has come for five seconds', (t) => {
  const { after } = createViews();
  t.false(after(1_000, all.slice(0, 2)).isGathered);
  t.false(after(3_000, all).isGathered);
  t.false(after(4_999, all).isGathered);
  t.true(after(1, all).isGathered);
});

test('two workers are enough to be gathered', (t) => {
  const { after } = createViews();
  t.false(after(3_000, all.slice(0, 2)).isGathered);
  t.false(after(4_999, all.slice(0, 2)).isGathered, 'they are new when they are seen first');
  t.true(after(1, all.slice(0, 2)).isGathered);
});

test('the workers of peers, which a leader hears of later, are no new ones', (t) => {
  const { after } = createViews();
  after(0, all.slice(0, 2));
  t.false(after(4_999, all.slice(0, 2), { peers: peersWith([worker('e')]) }).isGathered);
  t.true(after(1, all.slice(0, 2), { peers: peersWith([worker('e')]) }).isGathered);
});

test('a single worker is waited with for thirty seconds', (t) => {
  const { after } = createViews();
  t.false(after(1_000, all.slice(0, 1)).isGathered);
  t.false(after(28_999, all.slice(0, 1)).isGathered);
  t.true(after(1, all.slice(0, 1)).isGathered);
});

test('workers that come and go all the time are waited for thirty seconds', (t) => {
  const { after } = createViews();
  for (let second = 1; second < 30; second++) {
    t.false(after(1_000, all.slice(0, 2 + (second % 2))).isGathered);
  }
  t.true(after(1_000, all.slice(0, 2)).isGathered);
});

test('without a worker there is nobody to gather', (t) => {
  const { after } = createViews();
  t.false(after(100_000, []).isGathered);
});

test('workers that were counted before the first rollout count as gathered', (t) => {
  const { after, countBefore, clock } = createViews();
  countBefore(4);
  clock.advance(5_000);
  t.true(after(0, all).isGathered);
});

test('after another leader workers are gathered again', (t) => {
  const { after, leadAfterAnother } = createViews();
  after(0, all);
  t.true(after(100_000, all).isGathered);
  leadAfterAnother();
  t.false(after(4_999, all).isGathered);
  t.true(after(1, all).isGathered);
});

// Refusals.

const refusing = worker('a', { state: 'refused', refusal: 'no such unit' });

test('a refusal counts from when it was seen first, until it is over', (t) => {
  const { after } = createViews();
  const forMs = (ms: number, ...workers: WorkerFacts[]) => after(ms, workers).members[0]?.refusal;
  t.deepEqual(forMs(1_000, refusing), { text: 'no such unit', forMs: 0 });
  t.deepEqual(forMs(1_000, refusing), { text: 'no such unit', forMs: 1_000 });
  t.is(forMs(1_000, worker('a')), undefined);
  t.deepEqual(forMs(1_000, refusing), { text: 'no such unit', forMs: 0 });
  const second = { open: { ...rollout, step: 1 } };
  t.is(after(1_000, [refusing], second).members[0]?.refusal?.forMs, 0, 'of each step');
});

test('while the process stood still the others had no time to answer', (t) => {
  const { after, clock } = createViews();
  after(0, [refusing]);
  clock.stall(15_000);
  t.is(after(0, [refusing]).members[0]?.refusal?.forMs, 2_000);
});

test('a refusal by a worker without the revision is of another version', (t) => {
  const { after } = createViews();
  const { members } = after(0, [worker('c', { state: 'refused', refusal: 'no such unit' })]);
  t.is(members[0]?.refusal, undefined);
});

// Figures.

/** The figures that `judge` gets, by the text that it gives. */
function textOf({ judgement }: { readonly judgement: { readonly kind: string } }): string {
  return 'text' in judgement ? String(judgement.text) : judgement.kind;
}

test('decisions of a worker before it was first seen in the step do not count', (t) => {
  const { after } = createViews();
  const at = (having: number, others: number) => [
    counting('a', 'new', having, having),
    counting('c', 'old', others),
  ];
  t.is(textOf(after(0, at(5_000, 5_000))), '0 decisions with it, 0 without: fewer than 100');
  t.is(textOf(after(1_000, at(5_050, 5_099))), '50 decisions with it, 99 without: fewer than 100');
  t.is(
    textOf(after(1_000, at(5_100, 5_100))),
    'over limit 100.0 % where it is, 0.0 % elsewhere (100 decisions with it, 100 without)',
  );
  t.is(
    textOf(after(1_000, at(5_200, 5_200), { open: { ...rollout, step: 1 } })),
    '0 decisions with it, 0 without: fewer than 100',
  );
});

test('errors are the difference of two looks too', (t) => {
  const { after } = createViews();
  after(0, [counting('a', 'new', 1_000, 0, 500), counting('c', 'old', 1_000, 0, 0)]);
  t.is(
    textOf(after(0, [counting('a', 'new', 2_000, 0, 500), counting('c', 'old', 2_000)])),
    'within the bounds: errors 0.0 % beside 0.0 %; over limit 0.0 % beside 0.0 %; without a rule 0.0 % beside 0.0 % (1000 decisions with it, 1000 without)',
  );
  t.regex(
    textOf(after(0, [counting('a', 'new', 2_900, 0, 600), counting('c', 'old', 2_000)])),
    /^errors 5\.0 % where it is/,
  );
});

test('figures of another series begin anew', (t) => {
  const { after } = createViews();
  const others = (decisions: number) => counting('c', 'old', decisions);
  after(0, [counting('a', 'old', 9_000), others(0)]);
  t.is(
    textOf(after(0, [counting('a', 'new', 700, 700), others(500)])),
    '0 decisions with it, 500 without: fewer than 100',
  );
  t.is(
    textOf(after(0, [counting('a', 'new', 720, 720), others(500)])),
    '20 decisions with it, 500 without: fewer than 100',
  );
});

test('a worker counts on the side whose version it has, whatever it is given', (t) => {
  const { after } = createViews();
  after(0, [counting('a', 'old', 0), counting('c', 'new', 0)]);
  t.is(
    textOf(after(0, [counting('a', 'old', 60), counting('c', 'new', 30)])),
    '30 decisions with it, 60 without: fewer than 100',
  );
});

test('a worker that has left counts nothing, and goes on where it was when it comes back', (t) => {
  const { after } = createViews();
  const [b, d] = [counting('b', 'new', 0), counting('d', 'old', 0)];
  const c = counting('c', 'old', 50);
  after(0, [counting('a', 'new', 0), b, counting('c', 'old', 0), d]);
  t.is(textOf(after(0, [c, d])), '0 decisions with it, 50 without: fewer than 100');
  t.is(
    textOf(after(0, [counting('a', 'new', 40), c, d])),
    '40 decisions with it, 50 without: fewer than 100',
  );
});

test('workers that have left are forgotten when they are more than those that are there', (t) => {
  const { after } = createViews();
  const crowd = Array.from({ length: 3 }, (_, index) => counting(`x-${index}`, 'old', 0));
  after(0, [...crowd, counting('a', 'new', 0), counting('c', 'old', 0)]);
  after(0, [counting('a', 'new', 10), counting('c', 'old', 10)]);
  t.is(
    textOf(
      after(0, [counting('x-0', 'old', 90), counting('a', 'new', 20), counting('c', 'old', 20)]),
    ),
    '20 decisions with it, 20 without: fewer than 100',
  );
});

test('figures of peers count as those of this control plane', (t) => {
  const { after } = createViews();
  after(0, [counting('a', 'new', 0)], { peers: peersWith([counting('c', 'old', 0)]) });
  t.is(
    textOf(after(0, [counting('a', 'new', 10)], { peers: peersWith([counting('c', 'old', 20)]) })),
    '10 decisions with it, 20 without: fewer than 100',
  );
});

test('ten seconds of a hold that are bad are bad, whatever was before', (t) => {
  const { after } = createViews();
  /** `count`: of ten seconds each; errors are the newest worker's only in the last of them. */
  const at = (count: number, errors: number, decisions = 1_000) => [
    counting('a', 'new', count * decisions - errors, 0, errors),
    counting('b', 'new', count * decisions),
    counting('c', 'old', count * decisions),
    counting('d', 'old', count * decisions),
  ];
  after(0, at(0, 0));
  for (let count = 1; count <= 30; count++) {
    for (let second = 1; second < 10; second++) after(1_000, at(count - 1, 0));
    t.is(after(1_000, at(count, 0)).judgement.kind, 'good');
  }
  for (let second = 1; second < 10; second++) {
    t.is(after(1_000, at(31, 100)).judgement.kind, 'good', 'the slice has not ended');
  }
  const { kind, text } = after(1_000, at(31, 100)).judgement;
  t.is(kind, 'bad');
  t.regex(text, /^in the last 10s: errors 5\.0 % where it is, 0\.0 % elsewhere/);
});

test('a slice with too few requests to judge goes on until there are enough', (t) => {
  const { after } = createViews();
  const at = (decisions: number, errors: number) => [
    counting('a', 'new', 10_000 + decisions - errors, 0, errors),
    counting('c', 'old', 10_000 + decisions),
  ];
  after(0, [counting('a', 'new', 0), counting('c', 'old', 0)]);
  for (let second = 1; second <= 10; second++) after(1_000, at(0, 0));
  for (let second = 1; second <= 20; second++) {
    t.is(after(1_000, at(99, 30)).judgement.kind, 'good');
  }
  t.is(after(1_000, at(100, 30)).judgement.kind, 'bad');
});

test('each pool is compared by itself', (t) => {
  const { after } = createViews();
  const pool = {
    pools: {
      ...toPools([{ percent: 10, holdMs: 1_000 }], []),
      nameOf: (at: number) => (at === 1 ? 'edge' : undefined),
    },
  };
  const at = (decisions: number, overLimit: number) => [
    counting('a', 'new', decisions),
    counting('c', 'old', decisions),
    { ...counting('x', 'new', decisions, overLimit), pool: 1 },
    { ...counting('y', 'old', decisions), pool: 1 },
  ];
  after(0, at(0, 0), pool);
  t.regex(textOf(after(0, at(200, 200), pool)), /^node group 'edge': over limit 100\.0 %/);
});

// Workers that vanish.

test('workers that vanished in the step count, and those that came back do not', (t) => {
  const { after } = createViews();
  after(0, all);
  const lost = [
    gone('a', true, 4_000),
    gone('x', true, 4_000),
    gone('y', false, 4_000),
    gone('z', false, 4_000),
  ];
  t.like(after(5_000, all, { gone: lost }).gone, { having: 1, others: 2 });
  t.like(after(0, all, { gone: [], peers: { ...noPeers, gone: [gone('x', true, 4_000)] } }).gone, {
    having: 1,
    others: 0,
  });
});

test('a worker that two control planes have lost is one', (t) => {
  const { after } = createViews();
  after(0, all);
  const lost = gone('x', true, 4_000);
  t.like(after(5_000, all, { gone: [lost], peers: { ...noPeers, gone: [lost] } }).gone, {
    having: 1,
    others: 0,
  });
});

test('a worker that came back at a peer is not gone', (t) => {
  const { after } = createViews();
  after(0, all);
  const peers = peersWith([worker('x')]);
  t.like(after(5_000, all, { gone: [gone('x', true, 4_000)], peers }).gone, {
    having: 0,
    others: 0,
  });
});

test('a worker that came back at a peer is not gone when that peer gives no answer any more', (t) => {
  const { after } = createViews();
  after(0, all);
  const peers = peersWith([worker('x')]);
  after(5_000, all, { gone: [gone('x', true, 1_000)], peers });
  const unknown = { ...noPeers, unknown: 'peer b gives no answer' };
  const none = { having: 0, others: 0 };
  t.like(after(5_000, all, { gone: [gone('x', true, 6_000)], peers: unknown }).gone, none);
  const again = [gone('x', true, 3_000)];
  t.like(after(5_000, all, { gone: again }).gone, { having: 1, others: 0 });
});

test('a worker may have come back at a peer that was asked before it could', (t) => {
  const { after, clock } = createViews();
  after(0, all);
  const peersAskedAgo = (ms: number) => ({ ...noPeers, askedAtMs: clock.monotonicMs() - ms });
  clock.advance(9_000);
  const lost = [gone('x', true, 5_000)];
  t.like(after(0, all, { gone: lost, peers: peersAskedAgo(2_001) }).gone, { having: 0 });
  t.like(after(0, all, { gone: lost, peers: peersAskedAgo(2_000) }).gone, { having: 1 });
});

test('a worker without an instance that came back at a peer is not gone', (t) => {
  const { after } = createViews();
  after(0, all);
  const lost = [{ ...gone('["x"]', true, 6_000) }];
  const peers = peersWith([worker('["x","10.0.0.1:2"]', { id: 'x', instance: null })]);
  t.like(after(9_000, all, { gone: lost, peers }).gone, { having: 0, others: 0 });
  t.like(after(9_000, all, { gone: [gone('["y"]', true, 6_000)], peers }).gone, {
    having: 1,
    others: 0,
  });
});

test('a worker that vanished before the step does not count', (t) => {
  const { after } = createViews();
  after(10_000, all);
  t.like(after(5_000, all, { gone: [gone('x', true, 5_001)] }).gone, { having: 0, others: 0 });
  t.like(after(0, all, { gone: [gone('x', true, 5_000)] }).gone, { having: 1, others: 0 });
});

test('a connection that breaks is no vanished worker while the worker may connect again', (t) => {
  const { after } = createViews();
  after(0, all);
  t.like(after(9_000, all, { gone: [gone('x', true, 2_999)] }).gone, { having: 0, others: 0 });
  t.like(after(0, all, { gone: [gone('x', true, 3_000)] }).gone, { having: 1, others: 0 });
});

test('workers of the share that have all left are awaited for as long as those that come after a start', (t) => {
  const { after } = createViews();
  const others = ['c', 'd'].map((key) => worker(key));
  t.false(after(1_000, [worker('a'), ...others]).isAwaited);
  t.true(after(1_000, others).isAwaited);
  for (let second = 1; second < 29; second++) t.true(after(1_000, others).isAwaited);
  t.false(after(1_000, others).isAwaited);
  t.false(after(1_000, [worker('b'), ...others]).isAwaited);
  t.true(after(1_000, others).isAwaited);
});

test('a worker that came back is not gone for a moment that seems two seconds later, and lost again after that', (t) => {
  const { after } = createViews();
  const back = worker('x');
  after(0, all);
  after(10_000, [...all, back], { gone: [gone('x', true, 1_000)] });
  after(0, [...all, back], { gone: [gone('x', true, 4_000)] });
  const havingGone = (forMs: number) =>
    after(0, all, { gone: [gone('x', true, forMs)] }).gone.having;
  after(10_000, all);
  t.is(havingGone(20_000 - 11_000), 0);
  t.is(havingGone(20_000 - 11_001), 1);
});
