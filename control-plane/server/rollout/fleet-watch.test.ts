// What a leader sees in a sequence of checks, as lines for review: watches.txt lists the checks in the words that are
// defined below. `REWRITE=1` rewrites the results.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { RolloutOnRecord } from '../record/record.ts';
import { type GoneFacts, noPeers, type PeerFacts, type WorkerFacts } from './facts.ts';
import { gatherAgain, type Observation, startWatch, watch, watchCount } from './fleet-watch.ts';
import { positionOf, toPools } from './pools.ts';
import type { Seen } from './view.ts';

const rollout: RolloutOnRecord = {
  id: 'id',
  revision: 'new',
  content: 'new content',
  outcome: 'running',
  step: 0,
  chosen: ['a', 'b'].map((key) => positionOf('id', key, key)),
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

/** Makes the figures of a worker; `hasIt` is derived from the series. */
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
  const observation: Observation = {
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
    /** Checks after a time. */
    after(
      ms: number,
      own: readonly WorkerFacts[],
      given: Partial<Observation> & { gone?: readonly GoneFacts[] } = {},
    ) {
      clock.advance(ms);
      const seen = watch(
        memory,
        { ...observation, own: { workers: [...own], gone: [...(given.gone ?? [])] }, ...given },
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

/** The text of the judgement, which shows the figures that `judgeStep` received. */
function textOf({ judgement }: { readonly judgement: { readonly kind: string } }): string {
  return 'text' in judgement ? String(judgement.text) : judgement.kind;
}

/** Parses `NAME[:pending|refused|same][=new|old/DECISIONS/OVER LIMIT/ERRORS]`. */
function toWorkers(word: string): readonly WorkerFacts[] {
  if (word === 'all') return all;
  const [, name = '', state, series, counts = ''] =
    /^(\w+)(?::(\w+))?(?:=(new|old)([\d/]+))?$/.exec(word) ?? [];
  const [decisions = 0, overLimit, errors] = counts.split('/').slice(1).map(Number);
  const counted = series as 'new' | 'old' | undefined;
  return [
    {
      ...(counted ? counting(name, counted, decisions, overLimit, errors) : worker(name)),
      isAffected: state !== 'same',
      state: state === 'pending' || state === 'refused' ? state : 'in_force',
      refusal: state === 'refused' ? 'no such unit' : null,
    },
  ];
}

/** Parses `-NAME[:old]/FOR MS`. */
function toGone(word: string): GoneFacts {
  const [, name = '', old, forMs] = /^-(\w+)(:old)?\/(\d+)$/.exec(word) ?? [];
  return gone(name, old === undefined, Number(forMs));
}

const other = { ...rollout, id: 'other', step: 1, chosen: [positionOf('other', 'c', 'c')] };

/** Parses `[stall=MS] [leads] [counted=NUMBER] +MS`, then workers and gone workers, those of a peer with `~`, and
 * `unknown`, `asked=MS AGO`, `step=NUMBER` or `other` for another rollout. */
function observe({ clock, after, ...views }: ReturnType<typeof createViews>, text: string): Seen {
  const words = text.split(' ');
  const outputOf = (name: string) =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const isElse = /^(?:\+|stall=|counted=|asked=|step=|leads$|other$|unknown$)/;
  const known = words.filter((word) => !isElse.test(word));
  const own = known.filter((word) => !word.startsWith('~'));
  const peers = known.flatMap((word) => (word.startsWith('~') ? word.slice(1) : []));
  const goneOf = (some: readonly string[]) =>
    some.filter((word) => word.startsWith('-')).map(toGone);
  const workersOf = (some: readonly string[]) =>
    some.filter((word) => !word.startsWith('-')).flatMap(toWorkers);
  if (words.includes('leads')) views.leadAfterAnother();
  const [stallMs, count, askedMs, step] = ['stall', 'counted', 'asked', 'step'].map(outputOf);
  if (count !== undefined) views.countBefore(Number(count));
  if (stallMs !== undefined) clock.stall(Number(stallMs));
  clock.advance(Number(words.find((word) => word.startsWith('+'))));
  const askedAtMs =
    askedMs === undefined ? noPeers.askedAtMs : clock.monotonicMs() - Number(askedMs);
  return after(0, workersOf(own), {
    open: words.includes('other') ? other : { ...rollout, step: Number(step ?? 0) },
    gone: goneOf(own),
    peers: {
      ...{ ...noPeers, askedAtMs, workers: [...workersOf(peers)], gone: goneOf(peers) },
      unknown: words.includes('unknown') ? 'waits for peer b' : undefined,
    },
  });
}

const shown: Readonly<Record<string, (seen: Seen) => string>> = {
  connected: ({ members, connected }) => `${members.length} of ${connected}`,
  states: ({ members }) => members.map(({ name, state }) => `${name} ${state}`).join(', '),
  unknown: ({ unknown }) => `${unknown}`,
  held: ({ heldMs }) => `${heldMs}`,
  gathered: ({ isGathered }) => (isGathered ? 'yes' : 'no'),
  awaited: ({ isAwaited }) => (isAwaited ? 'yes' : 'no'),
  refusals: ({ members }) => `${members[0]?.refusal?.forMs ?? 'none'}`,
  figures: textOf,
  quiet: ({ judgement }) => (judgement.kind === 'silent' && judgement.isQuiet ? 'yes' : 'no'),
  gone: ({ gone: { having, others } }) => `${having} with it, ${others} without`,
};

testLines(test, new URL('watches.txt', import.meta.url), (given) => {
  const [what = '', observations = ''] = given.split(': ');
  const views = createViews();
  const seen = observations.split(' ; ').flatMap((observation) => {
    const [, times, text = ''] = /^(?:(\d+)x )?(.*)$/.exec(observation) ?? [];
    const each = Array.from({ length: Number(times ?? 1) }, () =>
      shown[what]?.(observe(views, text)),
    );
    return [...new Set(each)];
  });
  return seen.join(' ; ');
});

test('a worker is chosen by its position in the rollout', (t) => {
  const { after } = createViews();
  const { members } = after(0, all);
  t.deepEqual(
    members.map(({ name, isChosen, position }) => [name, isChosen, position]),
    [
      ["'a'", true, positionOf('id', 'a', 'a')],
      ["'b'", true, positionOf('id', 'b', 'b')],
      ["'c'", false, positionOf('id', 'c', 'c')],
      ["'d'", false, positionOf('id', 'd', 'd')],
    ],
  );
  const other = { ...rollout, id: 'other', chosen: [positionOf('other', 'c', 'c')] };
  t.deepEqual(
    after(1_000, all, { open: other }).members.map(({ isChosen }) => isChosen),
    [false, false, true, false],
  );
  t.true(after(1_000, all, { open: undefined }).members.every(({ isChosen }) => !isChosen));
  t.is(after(1_000, all).members[0]?.isChosen, true, 'of this rollout again');
  const unnamed = worker('x', { id: 'w', instance: null });
  t.is(after(1_000, [unnamed]).members[0]?.position, positionOf('id', 'w', undefined));
});

test('workers of a complete pool are chosen', (t) => {
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

test('ten bad seconds of a hold are bad, however good the others were', (t) => {
  const { after } = createViews();
  /** `count`: the number of ten-second parts; only the newest worker has errors, and only in the last part. */
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
  for (let second = 1; second < 10; second++)
    t.is(after(1_000, at(31, 100)).judgement.kind, 'good', 'the slice has not ended');
  const { kind, text } = after(1_000, at(31, 100)).judgement;
  t.is(kind, 'bad');
  t.regex(text, /^in the last 10s: errors 5\.0 % where it is, 0\.0 % elsewhere/);
});

test('a slice with too few requests to judge continues until there are enough', (t) => {
  const { after } = createViews();
  const at = (decisions: number, errors: number) => [
    counting('a', 'new', 10_000 + decisions - errors, 0, errors),
    counting('c', 'old', 10_000 + decisions),
  ];
  after(0, [counting('a', 'new', 0), counting('c', 'old', 0)]);
  for (let second = 1; second <= 10; second++) after(1_000, at(0, 0));
  for (let second = 1; second <= 20; second++)
    t.is(after(1_000, at(99, 30)).judgement.kind, 'good');
  t.is(after(1_000, at(100, 30)).judgement.kind, 'bad');
});

test('each pool is compared separately', (t) => {
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

test('a worker without an instance that reconnected to a peer is not gone', (t) => {
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
