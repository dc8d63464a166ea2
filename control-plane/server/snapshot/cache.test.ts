// The snapshots in force, as lines for review: cache.txt has events, in the commands defined below, and their results.
// `REWRITE=1` writes the current results.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { createRevisionStore, type RevisionStore } from '../../../test/support/revision-store.ts';
import { createRulesFolder, ruleText } from '../../../test/support/rules-folder.ts';
import type { Revision } from '../store/revision.ts';
import type { RevisionMemory } from './admission.ts';
import { buildSnapshots } from './build.ts';
import { Building } from './building.ts';
import { SnapshotCache } from './cache.ts';
import { nodeGroupsFile } from './node-groups.ts';
import type { NodeIdentity } from './snapshot.ts';

/** One group of nodes gets a domain that no revision changes. */
const groups = `groups:\n  - name: mailers\n    match: { id: mailer }\n    domains: [mail]\n`;
/** Revision z removes everything, and x is invalid; each other revision has a domain of its own name. */
function revisionOf(
  name: string,
  { id = name, message }: { readonly id?: string; readonly message?: string } = {},
): Revision {
  const texts = {
    'a.yaml': ruleText(name, 1).replace('year', name === 'x' ? 'yaer' : 'year'),
    'mail.yaml': ruleText('mail', 1),
    [nodeGroupsFile]: groups,
  };
  const files = Object.entries(name === 'z' ? {} : texts).map(([path, text]) => ({ path, text }));
  return { id, atMs: 0, author: undefined, message, files, problems: [] };
}

const nodeOf = (id: string): NodeIdentity => ({ id, cluster: '', metadata: new Map() });
const nodes = ['canary', 'other', 'mailer'].map(nodeOf);

type Verdict = NonNullable<ReturnType<RevisionMemory['verdictOf']>>;

/** A memory like that of a record beside the rules. */
interface Memory extends RevisionMemory {
  inForce: RevisionMemory['inForce'];
  rollsOut: boolean;
  readonly past: Set<string>;
  readonly verdicts: Map<string, Verdict>;
}

function createMemory(): Memory {
  const past = new Set<string>();
  const verdicts = new Map<string, Verdict>();
  const memory: Memory = {
    isKnown: true,
    rollsOut: true,
    inForce: undefined,
    past,
    verdicts,
    wasInForce: (content) => past.has(content) || memory.inForce?.content === content,
    wasServed: (content) => memory.wasInForce(content),
    ...({ wasTakenBack: () => false, isRolling: false } as const),
    verdictOf: (revision, content) => verdicts.get(revision) ?? verdicts.get(content),
  };
  return memory;
}

interface Given {
  readonly first?: Revision;
  readonly rollsOut?: boolean;
  readonly allowsRemoval?: boolean;
  readonly store?: RevisionStore;
  readonly folder?: string;
  readonly repositoryFolder?: string;
  readonly memory?: Memory;
  readonly clock?: ManualClock;
}

interface Harness {
  readonly cache: SnapshotCache;
  readonly store: RevisionStore;
  readonly memory: Memory;
  readonly log: ReturnType<typeof createRecordedLog>;
  readonly folder: string;
  readonly clock: ManualClock;
  publish(...given: Parameters<typeof revisionOf>): void;
  /** The nodes and revisions as text: `canary b other a, b on trial, newest b`. */
  report(): string;
  /** The nodes whose streams got something since the last call, and what; the log lines since then; what the nodes
   * have. */
  notified(): string;
  logged(): string;
  has(): string;
  /** Like a control plane that was stopped, with an empty state directory, or while the store cannot be read. */
  restart(how?: { readonly isFresh?: boolean; readonly isAway?: boolean }): Promise<Harness>;
}

const encode = loadProtos().rateLimitConfig.serialize;

async function startCache(t: ExecutionContext, given: Given = {}): Promise<Harness> {
  const { store = createRevisionStore(given.first ?? revisionOf('a')) } = given;
  const { memory = createMemory(), folder = createRulesFolder(t).path } = given;
  const log = createRecordedLog();
  const { clock = createManualClock() } = given;
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  memory.rollsOut = given.rollsOut ?? true;
  const cache = new SnapshotCache({
    store,
    building: new Building({ options, encode, clock }),
    stateDirectory: folder,
    allowsRemoval: given.allowsRemoval ?? false,
    ...(given.repositoryFolder !== undefined && { repositoryFolder: given.repositoryFolder }),
    memory: () => memory,
    log,
    clock,
  });
  t.teardown(() => cache.close());
  await cache.start();
  const domainOf = (node: NodeIdentity) => {
    const names = [...(cache.current(node)?.resources.keys() ?? ['-'])];
    return names.find((name) => name !== 'mail') ?? names[0] ?? 'nothing';
  };
  const versionOf = (node: NodeIdentity) => cache.current(node)?.version;
  const had = new Map(nodes.map((node) => [node, versionOf(node)]));
  let notified: string[] = [];
  // Like a stream, it does not accept the same snapshot twice.
  cache.onChange(() => {
    for (const node of nodes) {
      if (versionOf(node) === had.get(node)) continue;
      had.set(node, versionOf(node));
      notified.push(`${node.id} ${domainOf(node)}`);
    }
  });
  return {
    cache,
    store,
    memory,
    log,
    folder,
    clock,
    publish: (...args) => store.publish(revisionOf(...args)),
    report() {
      const { inForce, trial, newest } = cache.state();
      const flags = [
        newest?.valid === false && !newest.isHeldBack && 'refused',
        newest?.isHeldBack && 'held back',
        newest?.isWaiting && 'waits',
      ].filter(Boolean);
      const parts = [
        `${inForce?.revision.id ?? 'nothing'} in force`,
        ...(trial ? [`${trial.revision.id} on trial`] : []),
        ...(flags.length > 0 ? [`${newest?.revision.id} ${flags.join(', ')}`] : []),
      ];
      return parts.join(', ');
    },
    notified() {
      const all = notified;
      notified = [];
      return all.join(', ');
    },
    async restart({ isFresh = false, isAway = false } = {}) {
      await cache.close();
      const reached = isAway ? away(store) : store;
      const rulesFolder = isFresh ? createRulesFolder(t).path : folder;
      return startCache(t, { ...given, memory, store: reached, folder: rulesFolder });
    },
    has: () => nodes.map((node) => `${node.id} ${domainOf(node)}`).join(', '),
    logged: () =>
      log.lines
        .splice(0)
        .join(' / ')
        .replaceAll(/, [^,]* old,/g, ', some time old,') || 'nothing',
  };
}

const reasons = { taken_back: 'errors', held_back: 'it removes all', approved: 'meant' };

function setVerdict({ verdicts }: Memory, name: string, outcome: keyof typeof reasons): void {
  verdicts.set(name, { revision: 'other', outcome, reason: reasons[outcome] });
}

/** Like a rollout, which records the end first. */
function takeBack({ cache, memory }: Harness): void {
  const { content } = cache.state().trial ?? {};
  if (content !== undefined) setVerdict(memory, content, 'taken_back');
  cache.happen({ kind: 'take_back_trial', reason: 'errors' });
}

function contentOf(name: string): string {
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const outcome = buildSnapshots(revisionOf(name), options, { encode });
  return outcome.ok ? outcome.built.content : '';
}

/** A store that cannot be read. */
const away = (store: RevisionStore): RevisionStore => ({
  ...store,
  read: () => Promise.reject(new Error('no route to it')),
});

/** The events, as commands. Those with a result return it; `restart` continues with another control plane. */
const words: Readonly<Record<string, (at: Harness, ...given: string[]) => unknown>> = {
  /** `publish NAME [as ID] [now|supersede|steps|agreed]...` */
  publish({ publish }, name = '', ...how) {
    const trailers = [
      ...['now', 'supersede', 'steps']
        .filter((each) => how.includes(each))
        .map((each) => `Rollout: ${each}`),
      ...(how.includes('agreed') ? ['Allow-Removal: yes'] : []),
    ];
    publish(name, {
      id: how[0] === 'as' ? (how[1] ?? '') : name,
      ...(trailers.length > 0 && { message: `x\n\n${trailers.join('\n')}` }),
    });
  },
  /** The revision on trial: `offer canary|all|nobody`, and how it ends. */
  offer: ({ cache }, whom) =>
    cache.happen({
      kind: 'offer_trial',
      isOffered: ({ id }) => whom === 'all' || (whom === 'canary' && id === 'canary'),
    }),
  through: ({ cache }) => cache.happen({ kind: 'end_trial' }),
  'take-back': takeBack,
  /** What other control planes have on trial or in force. */
  follow: ({ cache }, name = '') =>
    cache.happen({ kind: 'follow_trial', revision: revisionOf(name) }),
  'follow-in-force': ({ cache }, name = '') =>
    cache.happen({ kind: 'follow_in_force', revision: revisionOf(name) }),
  /** The record: `word NAME taken_back|held_back|approved`, `approve NAME`, `on-record NAME`, which is in force, and
   * `past NAME`, which was in force. */
  word: ({ memory }, name = '', outcome = '') => setVerdict(memory, name, outcome as 'approved'),
  approve({ memory, cache }, name = '') {
    setVerdict(memory, name, 'approved');
    cache.happen({ kind: 'reconsider' });
  },
  reconsider: ({ cache }) => cache.happen({ kind: 'reconsider' }),
  'on-record'({ memory }, name = '') {
    memory.inForce = { revision: name, content: contentOf(name) };
  },
  past: ({ memory }, name = '') => memory.past.add(contentOf(name)),
  /** From now on the verdicts on revisions are known. */
  known({ memory, cache }) {
    Object.assign(memory, { isKnown: true });
    cache.happen({ kind: 'reconsider' });
  },
  wait: ({ clock }, seconds) => clock.advance(Number(seconds) * 1_000),
  close: ({ cache }) => cache.close(),
  /** `restart [fresh] [away]`: with an empty state directory; while the store cannot be read. */
  restart: ({ restart }, ...how) =>
    restart({ isFresh: how.includes('fresh'), isAway: how.includes('away') }),
  log: ({ logged }) => logged(),
  has: ({ has }) => has(),
  state({ cache }) {
    const { counts, withdrawn, stale, inForce, trial, newest } = cache.state();
    const last = newest?.problems.at(-1);
    return [
      `${counts.accepted} accepted, ${counts.refused} refused, ${counts.takenBack} taken back`,
      inForce?.isAtOnce ? `${inForce.revision.id} at once` : [],
      trial?.supersedes ? `${trial.revision.id} supersedes` : [],
      withdrawn ? `${withdrawn.revision} withdrawn by ${withdrawn.by}` : [],
      stale ? `${stale.reason} since ${stale.sinceMs / 1_000 - 1e9} s` : [],
      last ? `${last.rule}: ${last.message}` : [],
    ]
      .flat()
      .join(', ');
  },
};

/** `[(no-rollout removals unknown first=NAME taken)] WORDS ; WORDS`. */
testLines(test, new URL('cache.txt', import.meta.url), async (text, t) => {
  const [, flags = '', steps = ''] = /^(?:\((.*?)\) )?(.*)$/.exec(text) ?? [];
  const memory = Object.assign(createMemory(), { isKnown: !flags.includes('unknown') });
  const first = /first=(\S+)/.exec(flags)?.[1] ?? 'a';
  if (flags.includes('taken')) setVerdict(memory, first, 'taken_back');
  const [rollsOut, allowsRemoval] = [!flags.includes('no-rollout'), flags.includes('removals')];
  let at = await startCache(t, { memory, rollsOut, allowsRemoval, first: revisionOf(first) });
  let before = at.report();
  const out = [before];
  for (const step of steps.split(' ; ')) {
    const [name = '', ...given] = step.split(' ');
    const word = words[name];
    if (word === undefined) throw new Error(`there is no word '${name}'`);
    const answer = await word(at, ...given);
    if (name === 'restart') at = answer as Harness;
    const notified = at.notified();
    const now = at.report();
    const follows = notified === '' ? (now === before ? '=' : now) : `${notified}: ${now}`;
    out.push(typeof answer === 'string' ? answer : follows);
    before = now;
  }
  return out.join(' ; ');
});

test('a warning is logged once, and again after revisions without it', async (t) => {
  const { store, publish, log } = await startCache(t, { rollsOut: false });
  const warned = (id: string) => {
    const { files, ...rest } = revisionOf('a', { id });
    const group = '  - name: none\n    match: { id: none }\n    domains: ["*", none]\n';
    store.publish({
      ...rest,
      files: files.map(({ path, text }) => ({
        path,
        text: path === nodeGroupsFile ? `${text}${group}` : text,
      })),
    });
    return log.lines.splice(0).filter((line) => line.includes("'none' matches no domain")).length;
  };
  t.deepEqual([warned('w1'), warned('w2')], [1, 0]);
  publish('a', { id: 'a2' });
  t.is(warned('w3'), 1);
});

test('the state of a trial has its content and its groups', async (t) => {
  const { publish, cache } = await startCache(t);
  publish('b');
  const { content, groups: tried } = cache.state().trial ?? {};
  t.is(content, contentOf('b'));
  t.deepEqual(pluck(tried, 'name'), ['mailers', 'default']);
});

test('of two revisions, the later of which arrives while the first one is served, the later is stored', async (t) => {
  const { cache, publish, restart } = await startCache(t, { rollsOut: false });
  const stop = cache.onChange(() => {
    stop();
    publish('c');
  });
  publish('b');
  t.is((await restart({ isAway: true })).report(), 'c in force');
});

test('started while the store hangs: after five seconds what was in force before is, and what it gives in the end follows', async (t) => {
  const first = await startCache(t);
  await first.cache.close();
  const clock = createManualClock();
  const read = Promise.withResolvers<Revision>();
  const store = { ...first.store, read: () => read.promise };
  const { memory, folder } = first;
  const starting = startCache(t, { store, memory, folder, clock });
  clock.advance(2_000);
  clock.advance(3_000);
  const { report, log, publish } = await starting;
  t.is(report(), 'a in force');
  t.deepEqual(
    log.lines.map((line) => line.replace(/: the last good .*/, '')),
    [
      'info Reading a store is taking long; still waiting',
      'warning The store a store cannot be read (no answer within 5s, it is still asked)',
    ],
  );
  read.resolve(revisionOf('b'));
  publish('b');
  t.is(report(), 'a in force, b on trial');
  t.is(clock.pending, 0);
});

test('started while neither the store nor the copy can be read: both are logged', async (t) => {
  const first = await startCache(t);
  await first.cache.close();
  writeFileSync(join(first.folder, 'last-good.revision.json'), 'damaged');
  const { report, log } = await first.restart({ isAway: true });
  t.is(report(), 'nothing in force');
  t.regex(log.lines.join('\n'), /^error The last good revision cannot be restored: /);
});

test('a file of an invalid revision has its name in the repository, in the state and in the log', async (t) => {
  const { cache, log, publish } = await startCache(t, { repositoryFolder: 'rules/' });
  publish('x');
  t.deepEqual(cache.state().newest?.problems[0]?.file, 'rules/a.yaml');
  t.true(log.lines.some((line) => line.includes('is not served: rules/a.yaml:')));
});
