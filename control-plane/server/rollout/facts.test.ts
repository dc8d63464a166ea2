// What control planes report to each other about their workers. The facts about its own workers are lines for review:
// facts.txt lists workers in the words that are defined below, and the facts about them. `REWRITE=1` rewrites the
// facts.
import test from 'ava';
import { Value } from 'typebox/value';
import { instanceKey } from '../../../shared/instance-key.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { ruleText } from '../../../test/support/rules-folder.ts';
import type { Counted, Tallied } from '../fleet/tally.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import { buildSnapshots } from '../snapshot/build.ts';
import { LostRules } from '../snapshot/lost-rules.ts';
import { selectSnapshot } from '../snapshot/served.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { ConnectedWorker, VanishedWorker } from '../xds/workers.ts';
import {
  type FiguresFacts,
  factsJson,
  noPeers,
  type RolloutFacts,
  readOwnFacts,
  toPeerFacts,
  type WorkerFacts,
} from './facts.ts';

const worker: WorkerFacts = {
  key: 'i',
  id: 'w',
  instance: 'i',
  name: "'w'",
  pool: 0,
  isAffected: true,
  state: 'refused',
  refusal: 'bad unit',
  counted: null,
};
const gone = { key: 'x', hadIt: true, forMs: 10 };
const askedAtMs = 7;

function answer(facts: Partial<RolloutFacts> = {}): PeerAnswer<RolloutFacts> {
  return {
    url: 'http://b',
    value: { record: 'r', serves: 'r', workers: [worker], gone: [gone], ...facts },
  };
}

test('workers of a peer that follows the record count as reported', (t) => {
  t.deepEqual(toPeerFacts([answer()], 'r', askedAtMs), {
    workers: [worker],
    gone: [gone],
    unknown: undefined,
    lacks: false,
    askedAtMs,
  });
  t.deepEqual(toPeerFacts([], 'r', askedAtMs), { ...noPeers, askedAtMs });
});

for (const serves of ['before', null]) {
  test(`the workers of a peer that serves ${serves} are unknown, and their refusals and figures do not count`, (t) => {
    const counted = { series: 's', hasIt: true, decisions: 900, overLimit: 900, errors: 0 };
    const workers = [{ ...worker, counted }];
    t.deepEqual(toPeerFacts([answer({ serves, workers })], 'r', askedAtMs), {
      ...noPeers,
      askedAtMs,
      unknown: 'waits for peer http://b to follow this step',
      workers: [{ ...worker, state: 'pending', refusal: null, counted: null, isUnsure: true }],
    });
  });
}

test('a peer without an answer is named', (t) => {
  const away = { url: 'http://c', error: 'HTTP 503', last: undefined };
  const unknownOf = (...answers: PeerAnswer<RolloutFacts>[]) =>
    toPeerFacts(answers, 'r', askedAtMs).unknown;
  const text = 'waits for peer http://c, which does not answer (HTTP 503)';
  t.is(unknownOf(answer(), away), text);
  t.is(unknownOf(away, answer({ serves: null })), text);
  t.regex(unknownOf(answer({ serves: null }), away) ?? '', /^waits for peer http:\/\/b to follow/);
  const others = toPeerFacts([away, answer(), answer({ serves: null })], 'r', askedAtMs);
  t.deepEqual(
    [others.workers.map(({ state }) => state), others.gone],
    [['refused', 'pending'], [gone]],
    'the others are known',
  );
});

// The snapshots of this control plane: revision 2 is on trial with all workers, revision 1 is in force.

const encode = loadProtos().rateLimitConfig.serialize;
const snapshotOf = (number: number): Snapshot => {
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const { files } = revisionOf(number);
  const all = [...files, { path: 'else.yaml', text: ruleText('else', 1) }];
  const outcome = buildSnapshots({ files: all, problems: [] }, options, { encode });
  const node = { id: '', cluster: '', metadata: new Map<string, string>() };
  const snapshot = outcome.ok ? selectSnapshot(outcome.built.groups, node) : undefined;
  if (snapshot === undefined) throw new Error(`revision ${number} has no snapshot`);
  return snapshot;
};
const [before, after] = [snapshotOf(1), snapshotOf(2)];

/** `1`, `2` or `3`: the version of that revision; any other word is an unknown version. */
const versionOf = (word: string) =>
  /^[123]$/.test(word) ? snapshotOf(Number(word)).version : word;
const now: Tallied = {
  ...{ decisions: 5, overLimit: 2, errors: 1, noMatch: 3 },
  rules: new Map([
    ['revision-2.k', { hits: 2, overLimit: 1 }],
    ['revision-2..b', { hits: 1, overLimit: 0 }],
    ['revision-2.a.b', { hits: 1, overLimit: 0 }],
    ['else.k', { hits: 9, overLimit: 0 }],
  ]),
  failures: new Map([
    ['revision-1', { errors: 0, noMatch: 2 }],
    ['else', { errors: 0, noMatch: 1 }],
  ]),
};
const lost = new LostRules('else', true, new Map([['k', 'gone']]));
const counted: Counted = {
  ...{ nodeId: 'w', series: 's', version: after.version, storeAway: undefined },
  ...{ now, older: now, before: undefined },
};
/** The part of a revision that a worker subscribes to, if not all of it. */
const parts: Readonly<Record<string, string | undefined>> = {
  nothing: undefined,
  same: 'the same part',
};
const older = { ...now, decisions: now.decisions - 900, overLimit: now.overLimit - 90 };

/** Parses `ID[/INSTANCE] [has=VERSION] [sent=VERSION] [refuses=VERSION] [long] [wants=nothing|same] [at=ADDRESS]`; the
 * instance is `i` by default, and `-` stands for none; a worker has revision 2 by default. Its counts:
 * `[counts=VERSION] [of=ID] [as=INSTANCE] [recent] [unnamed] [before=VERSION]`; `unnamed` omits the names of domains
 * without rules. Gone: `since=MS`. */
function toWorker(text: string) {
  const [name = '', ...words] = text.split(' ');
  const [id = '', instance = 'i'] = name.split('/');
  const of = (word: string) =>
    words.find((each) => each.startsWith(`${word}=`))?.slice(word.length + 1);
  const at = (word: string | undefined) =>
    word === undefined || word === 'none' ? undefined : { version: versionOf(word), atMs: 0 };
  const [own, refuses, wants] = [
    instance === '-' ? undefined : instance,
    of('refuses'),
    of('wants'),
  ];
  const metadata = new Map(own === undefined ? [] : [[instanceKey, own]]);
  const message = words.includes('long') ? 'x'.repeat(9_000) : 'no such unit';
  const worker: ConnectedWorker & VanishedWorker = {
    ...{ node: { id, cluster: '', metadata }, instance: own, mode: 'sotw' as const, sinceMs: 0 },
    ...{ address: of('at') ?? '10.0.0.1:1', sent: at(of('sent')), acked: at(of('has') ?? '2') },
    nacked:
      refuses === undefined ? undefined : { version: at(refuses)?.version, text: message, atMs: 0 },
    wantedVersion: ({ version }) => (wants === undefined ? version : parts[wants]),
    goneAtMs: Number(of('since') ?? 4_000),
  };
  const [sums, before] = [of('counts'), of('before')];
  const reported: Counted | undefined =
    sums === undefined
      ? undefined
      : {
          ...counted,
          ...{ nodeId: of('of') ?? 'w', version: versionOf(sums) },
          ...(words.includes('recent') && { older }),
          ...(words.includes('unnamed') && { now: { ...now, noMatch: 9 } }),
          ...(before !== undefined && { before: { version: versionOf(before), now, older } }),
        };
  return { worker, reported: reported && ([of('as') ?? instance, reported] as const) };
}

function showFigures({
  decisions,
  overLimit,
  errors,
  noMatch,
  gone,
  domains = [],
}: FiguresFacts): string {
  const each = domains.map(({ name, hits, overLimit: over }) => `, ${name} ${over}/${hits}`);
  return `${decisions} decisions, ${overLimit} over limit, ${errors} errors, ${noMatch} without a rule${gone ? `, ${gone} of rules that go` : ''}${each.join('')}`;
}

/** Parses `[(off|same|first|meant|lost)] WORKER, WORKER ; GONE, GONE`: nothing is on trial, revision 2 is already in
 * force, no revision is, the removal of its domains is intended, or a remaining domain loses a rule. */
// Proof of SECURITY.md: cannot speak for another worker, or take its stream
testLines(test, new URL('facts.txt', import.meta.url), (given) => {
  const [, flag, text = ''] = /^(?:\((\w+)\) )?(.*)$/.exec(given) ?? [];
  const [workers = [], gone = []] = text
    .split(' ; ')
    .map((part) => part.split(', ').flatMap((each) => (each === '-' ? [] : [toWorker(each)])));
  const first = flag === 'same' ? after : flag === 'first' ? undefined : before;
  const facts = readOwnFacts(
    {
      workers: {
        list: () => workers.map(({ worker }) => worker),
        vanished: () => gone.map(({ worker }) => worker),
      },
      snapshots: {
        current: () => (flag === 'off' ? before : after),
        compare: () => (flag === 'off' ? undefined : { before: first, after }),
        lostRules: () => new Map(flag === 'lost' ? [['else', lost] as const] : []),
      },
      readCounted: () => new Map(workers.flatMap(({ reported }) => (reported ? [reported] : []))),
    },
    flag === 'off' ? undefined : { pools: { poolOf: () => 3 }, isRemovalMeant: flag === 'meant' },
    10_000,
  );
  const lines = [
    ...facts.workers.map(({ key, id, instance, name, pool, isAffected, state, refusal, counted }) =>
      [
        `${key}: ${id} of ${instance}, ${name}, pool ${pool}, ${isAffected ? 'affected' : 'not affected'}, ${state}`,
        ...(refusal === null ? [] : [`refuses: ${refusal.length > 99 ? refusal.length : refusal}`]),
        ...(counted === null
          ? []
          : [`${counted.series} ${counted.hasIt ? 'with' : 'without'} it ${showFigures(counted)}`]),
        ...(counted?.recent ? [`lately ${showFigures(counted.recent)}`] : []),
      ].join('; '),
    ),
    ...facts.gone.map(
      ({ key, hadIt, forMs }) =>
        `${key} is gone for ${forMs} ms, ${hadIt ? 'had it' : 'did not have it'}`,
    ),
    ...(Value.Check(factsJson, { record: 'r', serves: null, ...facts })
      ? []
      : ['no peer reads it']),
  ];
  return lines.join(' ; ') || 'nothing';
});

test('of too many domains the worst and the largest are sent each second, and the others are named', (t) => {
  const resource = [...after.resources.values()][0];
  const names = Array.from({ length: 50 }, (_, at) => `d${String(at).padStart(2, '0')}`);
  const changed = { ...after, resources: new Map(names.map((name) => [name, resource])) };
  const rules = names.map((name, at) => [`${name}.k`, { hits: 50 - at, overLimit: 0 }] as const);
  const sums = {
    ...{ ...now, decisions: 1_000, errors: 0, rules: new Map(rules) },
    failures: new Map([['d49', { errors: 1, noMatch: 0 }]]),
  };
  const workers = Array.from({ length: 500 }, (_, at) => toWorker(`w/${at} counts=2`));
  const facts = readOwnFacts(
    {
      workers: { list: () => workers.map(({ worker }) => worker), vanished: () => [] },
      snapshots: {
        ...{ current: () => after, compare: () => ({ before, after: changed as Snapshot }) },
        lostRules: () => new Map(),
      },
      readCounted: () => new Map(workers.map((_, at) => [String(at), { ...counted, now: sums }])),
    },
    { pools: { poolOf: () => 0 }, isRemovalMeant: false },
    0,
  );
  const sent = facts.workers.map(({ counted: of }) => of?.domains?.map(({ name }) => name));
  t.deepEqual(sent[499]?.sort(), [...names.slice(0, 39), 'd49']);
  t.deepEqual(facts.leftOut, { count: 10, first: 'd39' });
});
