import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRevisionStore, type RevisionStore } from '../../test/support/revision-store.ts';
import { createRulesFolder, ruleText } from '../../test/support/rules-folder.ts';
import type { Revision } from '../store/revision.ts';
import type { RevisionMemory } from './admission.ts';
import { buildSnapshots } from './build.ts';
import { Building } from './building.ts';
import { SnapshotCache } from './cache.ts';
import { nodeGroupsFile } from './node-groups.ts';
import type { NodeIdentity } from './snapshot.ts';

/** One group of nodes gets what no revision changes. */
const groups = `groups:\n  - name: mailers\n    match: { id: mailer }\n    domains: [mail]\n`;
/** Revision z removes everything, and x is invalid; the others have a domain of their name. */
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

/** A memory as a record beside the rules gives it. */
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
    wasTakenBack: () => false,
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
  publish(...given: Parameters<typeof revisionOf>): void;
  /** The nodes and revisions in words: `canary b other a, b on trial, newest b`. */
  tell(): string;
  /** The nodes whose streams got something since this was called last, with what. */
  told(): string;
}

const encode = loadProtos().rateLimitConfig.serialize;

async function startCache(t: ExecutionContext, given: Given = {}): Promise<Harness> {
  const { store = createRevisionStore(given.first ?? revisionOf('a')) } = given;
  const { memory = createMemory(), folder = createRulesFolder(t).path } = given;
  const log = createRecordedLog();
  const { clock = createManualClock() } = given;
  const options = {
    mergeDomains: false,
    maxResponseBytes: 4 * 1024 * 1024,
  };
  memory.rollsOut = given.rollsOut ?? true;
  const cache = new SnapshotCache({
    store,
    building: new Building({ options, encode, clock }),
    stateDirectory: folder,
    allowsRemoval: given.allowsRemoval ?? false,
    ...(given.repositoryFolder !== undefined && { repositoryFolder: given.repositoryFolder }),
    memory,
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
  let told: string[] = [];
  // As streams do, it takes nothing twice.
  cache.onChange(() => {
    for (const node of nodes) {
      if (versionOf(node) === had.get(node)) continue;
      had.set(node, versionOf(node));
      told.push(`${node.id} ${domainOf(node)}`);
    }
  });
  return {
    cache,
    store,
    memory,
    log,
    folder,
    publish: (...args) => store.publish(revisionOf(...args)),
    tell() {
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
    told() {
      const all = told;
      told = [];
      return all.join(', ');
    },
  };
}

const toCanary = ({ id }: NodeIdentity) => id === 'canary';
const old = 'old';

/** As a rollout does, which puts it on record first. */
function takeBack({ cache, memory }: Harness): void {
  const { content } = cache.state().trial ?? {};
  if (content !== undefined)
    memory.verdicts.set(content, { revision: 'other', outcome: 'taken_back', reason: 'errors' });
  cache.takeBackTrial('errors');
}

/** The steps that bring a control plane there, from revision a in force. */
const states: Readonly<Record<string, (harness: Harness) => void>> = {
  'a in force': () => {},
  'b on trial with nobody': ({ publish }) => publish('b'),
  'b on trial with some': ({ publish, cache }) => {
    publish('b');
    cache.offerTrial(toCanary);
  },
  'b on trial, c waits': ({ publish, cache }) => {
    publish('b');
    cache.offerTrial(toCanary);
    publish('c');
  },
  'b on trial, its content waits as b2': ({ publish, cache }) => {
    publish('b');
    cache.offerTrial(toCanary);
    publish('b', { id: 'b2' });
  },
  'b on trial, x invalid': ({ publish, cache }) => {
    publish('b');
    cache.offerTrial(toCanary);
    publish('x');
  },
  'b on trial, z held back': ({ publish, cache }) => {
    publish('b');
    cache.offerTrial(toCanary);
    publish('z');
  },
  'b taken back': (harness) => {
    const { publish, cache } = harness;
    publish('b');
    cache.offerTrial(toCanary);
    takeBack(harness);
  },
  'b in force': ({ publish, cache, memory }) => {
    memory.past.add(cache.state().inForce?.content ?? '');
    publish('b');
    cache.endTrial();
  },
  'x invalid': ({ publish }) => publish('x'),
  'z held back': ({ publish }) => publish('z'),
};

const events: Readonly<Record<string, (harness: Harness) => void>> = {
  'the content of a comes as a2': ({ publish }) => publish('a', { id: 'a2' }),
  'the content of b comes as b2': ({ publish }) => publish('b', { id: 'b2' }),
  'c comes': ({ publish }) => publish('c'),
  'c comes, now': ({ publish }) => publish('c', { id: 'c2', message: 'x\n\nRollout: now' }),
  'c comes, and supersedes': ({ publish }) =>
    publish('c', { id: 'c2', message: 'x\n\nRollout: supersede' }),
  'old content comes': ({ publish }) => publish(old),
  'old content comes, in steps': ({ publish }) => publish(old, { message: 'x\n\nRollout: steps' }),
  'x comes': ({ publish }) => publish('x', { id: 'x2' }),
  'z comes': ({ publish }) => publish('z', { id: 'z2' }),
  'z comes, as agreed': ({ publish }) =>
    publish('z', { id: 'z2', message: 'x\n\nAllow-Removal: yes' }),
  'z is approved': ({ memory, cache }) => {
    memory.verdicts.set('z', { revision: 'other', outcome: 'approved', reason: 'meant' });
    cache.reconsider();
  },
  'the trial comes through': ({ cache }) => cache.endTrial(),
  'the trial is taken back': takeBack,
  'some get it': ({ cache }) => cache.offerTrial(toCanary),
  'nobody gets it any more': ({ cache }) => cache.offerTrial(() => false),
  'all get it': ({ cache }) => cache.offerTrial(() => true),
  'd is followed': ({ cache }) => void cache.followTrial(revisionOf('d')),
  'x is followed': ({ cache }) => void cache.followTrial(revisionOf('x')),
};
type Outcomes = Readonly<Record<string, string>>;

/** What the nodes are told, and what becomes of the revisions, by event: while nothing is on trial. `newest` is what is
 * said of one that is not in force. */
function idle(has: string, newest = ''): Outcomes {
  const asBefore = `nobody; ${has} in force${newest}`;
  return {
    'the content of a comes as a2': `${has === 'a' ? 'nobody' : 'canary a, other a'}; a2 in force`,
    'the content of b comes as b2': 'nobody; a in force, b2 on trial',
    'c comes': `nobody; ${has} in force, c on trial`,
    'c comes, now': 'canary c, other c; c2 in force',
    'c comes, and supersedes': `nobody; ${has} in force, c2 on trial`,
    'old content comes': 'canary old, other old; old in force',
    'old content comes, in steps': `nobody; ${has} in force, old on trial`,
    'x comes': `nobody; ${has} in force, x2 refused`,
    'z comes': `nobody; ${has} in force, z2 held back`,
    'z comes, as agreed': `nobody; ${has} in force, z2 on trial`,
    'z is approved': asBefore,
    'the trial comes through': asBefore,
    'the trial is taken back': asBefore,
    'some get it': asBefore,
    'nobody gets it any more': asBefore,
    'all get it': asBefore,
    'd is followed': `nobody; ${has} in force, d on trial${newest}`,
    'x is followed': asBefore,
  };
}

/** While the canary has b on trial. */
function trying(newest = ''): Outcomes {
  const asBefore = `a in force, b on trial${newest}`;
  return {
    ...idle('a'),
    'the content of a comes as a2': 'canary a; a2 in force',
    'the content of b comes as b2': 'nobody; a in force, b on trial, b2 waits',
    'c comes': 'nobody; a in force, b on trial, c waits',
    'c comes, and supersedes': 'canary a; a in force, c2 on trial',
    'old content comes, in steps': 'nobody; a in force, b on trial, old waits',
    'x comes': 'nobody; a in force, b on trial, x2 refused',
    'z comes': 'nobody; a in force, b on trial, z2 held back',
    'z comes, as agreed': 'nobody; a in force, b on trial, z2 waits',
    'z is approved': `nobody; ${asBefore}`,
    'the trial comes through': `other b; b in force${newest}`,
    'the trial is taken back': `canary a; a in force${newest || ', b refused'}`,
    'some get it': `nobody; ${asBefore}`,
    'nobody gets it any more': `canary a; ${asBefore}`,
    'all get it': `other b; ${asBefore}`,
    'd is followed': `canary a; a in force, d on trial${newest || ', b waits'}`,
    'x is followed': `nobody; ${asBefore}`,
  };
}

const expected: Readonly<Record<string, Outcomes>> = {
  'a in force': idle('a'),
  'b on trial with nobody': {
    ...trying(),
    'the content of a comes as a2': 'nobody; a2 in force',
    'c comes, and supersedes': 'nobody; a in force, c2 on trial',
    'the trial comes through': 'canary b, other b; b in force',
    'the trial is taken back': 'nobody; a in force, b refused',
    'some get it': 'canary b; a in force, b on trial',
    'nobody gets it any more': 'nobody; a in force, b on trial',
    'all get it': 'canary b, other b; a in force, b on trial',
    'd is followed': 'nobody; a in force, d on trial, b waits',
  },
  'b on trial with some': trying(),
  'b on trial, c waits': {
    ...trying(', c waits'),
    'the trial comes through': 'other b; b in force, c on trial',
    'the trial is taken back': 'canary a; a in force, c on trial',
  },
  'b on trial, its content waits as b2': {
    ...trying(', b2 waits'),
    'the trial comes through': 'other b; b2 in force',
    'the trial is taken back': 'canary a; a in force, b2 refused',
  },
  'b on trial, x invalid': trying(', x refused'),
  'b on trial, z held back': {
    ...trying(', z held back'),
    'z is approved': 'nobody; a in force, b on trial, z waits',
  },
  'b taken back': {
    ...idle('a', ', b refused'),
    'the content of b comes as b2': 'nobody; a in force, b2 refused',
  },
  'b in force': { ...idle('b'), 'the content of b comes as b2': 'nobody; b2 in force' },
  'x invalid': idle('a', ', x refused'),
  'z held back': {
    ...idle('a', ', z held back'),
    'z is approved': 'nobody; a in force, z on trial',
  },
};

for (const [state, arrive] of Object.entries(states)) {
  for (const [event, happen] of Object.entries(events)) {
    test(`${state}; ${event}`, async (t) => {
      const harness = await startCache(t);
      harness.memory.past.add(contentOf(old));
      arrive(harness);
      harness.told();
      happen(harness);
      t.is(`${harness.told() || 'nobody'}; ${harness.tell()}`, expected[state]?.[event] ?? '');
    });
  }
}

function contentOf(name: string): string {
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const outcome = buildSnapshots(revisionOf(name), options, { encode });
  return outcome.ok ? outcome.built.content : '';
}

const isTakenBack = { revision: 'other', outcome: 'taken_back', reason: 'errors' } as const;

test('the first revision of all is in force at once', async (t) => {
  const { tell, told, log } = await startCache(t);
  t.deepEqual([tell(), told()], ['a in force', '']);
  t.deepEqual(log.lines, ['notice Revision a is in force: 2 domains, 2 limits']);
});

test('the log says what becomes of each revision', async (t) => {
  const harness = await startCache(t);
  const { publish, cache, log } = harness;
  const since = () =>
    log.lines.splice(0).map((line) => line.replace(/ is not served: .*/s, ' is not served'));
  since();
  publish('a', { id: 'a2' });
  t.deepEqual(since(), [
    'info Revision a2 is in force: 2 domains, 2 limits; nothing changes for the workers',
  ]);
  publish('b');
  publish('c');
  t.deepEqual(since(), [
    'notice Revision c waits until b, which is on trial, is in force or taken back',
  ]);
  takeBack(harness);
  t.deepEqual(since(), ['error Revision b of a store is not served']);
  cache.endTrial();
  t.deepEqual(since(), ['notice Revision c is in force: 2 domains, 2 limits']);
  publish('x');
  t.deepEqual(since(), ['error Revision x of a store is not served']);
  publish('c', { id: 'c2' });
  t.deepEqual(since(), [
    'notice Revision c2 is in force: 2 domains, 2 limits; nothing changes for the workers',
  ]);
  publish('d', { message: 'x\n\nRollout: now' });
  t.deepEqual(since(), ['info Revision d ("x") is in force: 2 domains, 2 limits']);
});

test('a warning is said once, and again after revisions without it', async (t) => {
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

test('a revision given to all at once is told apart from one that came through a trial', async (t) => {
  const { publish, cache } = await startCache(t);
  t.true(cache.state().inForce?.isAtOnce);
  publish('b');
  cache.endTrial();
  t.false(cache.state().inForce?.isAtOnce);
});

test('the same revision that comes again is the one that is known', async (t) => {
  const { publish, cache } = await startCache(t);
  publish('a');
  publish('x');
  publish('x');
  t.deepEqual(cache.state().counts, { accepted: 1, refused: 1, takenBack: 0 });
});

test('the revision that is served changes no more after a control plane was closed', async (t) => {
  const { publish, cache, tell } = await startCache(t, { rollsOut: false });
  await cache.close();
  publish('b');
  t.is(tell(), 'a in force');
});

test('while it is not known what was said of revisions, the newest one waits for that', async (t) => {
  const memory = { ...createMemory(), isKnown: false };
  const { cache, tell, publish } = await startCache(t, { memory });
  t.is(tell(), 'nothing in force');
  publish('b');
  t.is(tell(), 'nothing in force');
  memory.isKnown = true;
  cache.reconsider();
  t.is(tell(), 'b in force');
});

test('a revision that all others have in force is in force here as well, beside the trial', async (t) => {
  const { publish, cache, tell, told, log } = await startCache(t);
  publish('b');
  cache.offerTrial(toCanary);
  told();
  cache.followInForce(revisionOf('x'));
  t.is(tell(), 'a in force, b on trial');
  cache.followInForce(revisionOf('c'));
  t.is(tell(), 'c in force, b on trial');
  t.is(told(), 'other c');
  t.false(cache.state().inForce?.isAtOnce);
  t.is(cache.state().counts.accepted, 2);
  t.is(log.lines.at(-1), 'notice Revision c is in force: 2 domains, 2 limits');
});

test('a revision taken back here is followed where others try it again, and is refused no more', async (t) => {
  const harness = await startCache(t);
  harness.publish('b');
  takeBack(harness);
  t.is(harness.tell(), 'a in force, b refused');
  harness.cache.followTrial(revisionOf('b'));
  t.is(harness.tell(), 'a in force, b on trial');
});

test('a revision that was followed does not wait for itself when it arrives', async (t) => {
  const { cache, publish, tell } = await startCache(t);
  cache.followTrial(revisionOf('d'));
  publish('d');
  t.is(tell(), 'a in force, d on trial');
});

test('old content that is tried in steps is no undo when it comes again without them', async (t) => {
  const { publish, tell, memory } = await startCache(t);
  memory.past.add(contentOf(old));
  publish(old, { message: 'x\n\nRollout: steps' });
  publish(old, { id: 'old2' });
  t.is(tell(), 'a in force, old on trial, old2 waits');
});

test('a verdict on the trial is none on a newer revision that is invalid', async (t) => {
  const harness = await startCache(t);
  harness.publish('b');
  harness.publish('x');
  takeBack(harness);
  const { newest } = harness.cache.state();
  t.is(newest?.revision.id, 'x');
  t.false(newest?.problems.some(({ rule }) => rule === 'taken-back'));
});

test('a revision that is tried again, and waits, is tried when the one before it is taken back', async (t) => {
  const harness = await startCache(t);
  harness.publish('b');
  takeBack(harness);
  harness.publish('c');
  harness.publish('b', { id: 'b3' });
  t.is(harness.tell(), 'a in force, c on trial, b3 waits');
  takeBack(harness);
  t.is(harness.tell(), 'a in force, b3 on trial');
});

test('without a rollout every good revision is in force at once', async (t) => {
  const { publish, tell, told } = await startCache(t, { rollsOut: false });
  publish('b');
  t.deepEqual([tell(), told()], ['b in force', 'canary b, other b']);
});

test('where removals are allowed nothing is held back', async (t) => {
  const { publish, tell } = await startCache(t, { rollsOut: false, allowsRemoval: true });
  publish('z');
  t.is(tell(), 'z in force');
});

test('where removals are allowed what others hold back is judged once, and waits for its turn', async (t) => {
  const { publish, tell, memory, cache, log } = await startCache(t, { allowsRemoval: true });
  publish('b');
  publish('z');
  const said = log.lines.length;
  memory.verdicts.set('z', { revision: 'z', outcome: 'held_back', reason: 'it removes all' });
  cache.reconsider();
  cache.reconsider();
  t.is(tell(), 'a in force, b on trial, z waits');
  t.deepEqual(log.lines.slice(said), []);
});

test('an approval of what is held back brings it on, once', async (t) => {
  const { publish, tell, memory, cache } = await startCache(t, { rollsOut: false });
  publish('z');
  cache.reconsider();
  t.is(tell(), 'a in force, z held back');
  memory.verdicts.set('z', { revision: 'other', outcome: 'approved', reason: 'meant' });
  cache.reconsider();
  t.is(tell(), 'z in force');
  t.is(cache.state().counts.accepted, 2);
  cache.reconsider();
  t.is(cache.state().counts.accepted, 2);
});

test('a revision that was taken back is refused with the reason, and tried anew when it comes again after others', async (t) => {
  const harness = await startCache(t);
  const { publish, tell, cache } = harness;
  publish('b');
  cache.offerTrial(toCanary);
  takeBack(harness);
  t.deepEqual(
    cache.state().newest?.problems.map(({ rule, message }) => [rule, message]),
    [['taken-back', 'taken back: errors']],
  );
  t.deepEqual(cache.state().counts, { accepted: 1, refused: 0, takenBack: 1 });
  cache.reconsider();
  t.is(tell(), 'a in force, b refused');
  publish('c');
  cache.takeBackTrial('errors');
  publish('b', { id: 'b3' });
  t.is(tell(), 'a in force, b3 on trial');
});

test('an undo to what was taken back ends the trial, and is refused all the same', async (t) => {
  const memory = createMemory();
  const { cache, store, tell, told } = await startCache(t, { memory });
  store.publish(revisionOf('b'));
  cache.offerTrial(toCanary);
  told();
  memory.past.add(contentOf('z'));
  store.publish(revisionOf('z', { id: 'z2' }));
  t.is(tell(), 'a in force, z2 held back');
  t.is(told(), 'canary a');
  t.deepEqual(cache.state().withdrawn, { revision: 'b', by: 'z2' });
});

test('a trial that was given up for a newer revision is told, until it is on trial again', async (t) => {
  const { publish, cache } = await startCache(t);
  publish('b');
  t.is(cache.state().withdrawn, undefined);
  publish('a', { id: 'a2' });
  t.deepEqual(cache.state().withdrawn, { revision: 'b', by: 'a2' });
  publish('c', { message: 'x\n\nRollout: now' });
  t.deepEqual(cache.state().withdrawn, { revision: 'b', by: 'a2' });
  publish('d');
  t.deepEqual(cache.state().withdrawn, { revision: 'b', by: 'a2' });
  publish('b', { message: 'x\n\nRollout: supersede' });
  t.is(cache.state().withdrawn, undefined);
});

test('an undo says which revision the workers on trial lose', async (t) => {
  const { publish, cache, log } = await startCache(t);
  publish('b');
  cache.offerTrial(({ id }) => id === 'canary');
  log.lines.length = 0;
  publish('a', { id: 'a2' });
  t.deepEqual(
    log.lines.map((line) => line.replace(/ \(""\)|: \d domains.*?limits/g, '')),
    [
      'notice Revision b is on trial no more: a2 has taken its place',
      'info Revision a2 is in force',
    ],
  );
});

test('a trial tells its content, its groups and whether it supersedes', async (t) => {
  const { publish, cache } = await startCache(t);
  publish('b');
  const { trial } = cache.state();
  t.is(trial?.content, contentOf('b'));
  t.is(trial?.supersedes, false);
  t.deepEqual(
    trial?.groups.map(({ name }) => name),
    ['mailers', 'default'],
  );
  publish('c', { message: 'x\n\nRollout: supersede' });
  t.is(cache.state().trial?.supersedes, true);
});

test('followed: a revision that is invalid here is not on trial, and one that is newest does not wait', async (t) => {
  const { publish, cache, tell } = await startCache(t);
  publish('b');
  cache.followTrial(revisionOf('x'));
  t.is(tell(), 'a in force, b on trial');
  cache.followTrial(revisionOf('c'));
  t.is(tell(), 'a in force, c on trial, b waits');
  cache.followTrial(revisionOf('b'));
  t.is(tell(), 'a in force, b on trial, b waits');
});

test('how long the newest revisions have been invalid is told from the first one on', async (t) => {
  const { publish, cache } = await startCache(t);
  t.is(cache.state().stale, undefined);
  publish('x');
  const { stale } = cache.state();
  t.is(stale?.reason, 'newest_invalid');
  publish('x', { id: 'x2' });
  t.deepEqual(cache.state().stale, stale);
  t.is(cache.state().counts.refused, 2);
  publish('b');
  t.is(cache.state().stale, undefined);
});

// Starts.

/** As a control plane that was stopped, or with an empty state directory. */
async function restart(
  t: ExecutionContext,
  before: Harness,
  isFresh = false,
  given: Given = {},
): Promise<Harness> {
  await before.cache.close();
  const { store, memory, folder } = before;
  return startCache(t, { store, memory, ...(isFresh ? {} : { folder }), ...given });
}

test('started during a trial: workers keep what they have, and it goes on with nobody', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  first.cache.offerTrial(toCanary);
  const second = await restart(t, first);
  t.is(second.tell(), 'a in force, b on trial');
  t.is(second.cache.current(nodes[0] ?? nodeOf(''))?.resources.has('a'), true);
});

/** A store that cannot be read. */
const away = (store: RevisionStore): RevisionStore => ({
  ...store,
  read: () => Promise.reject(new Error('no route to it')),
});

test('started while the store cannot be read: what was in force before is, and the log says how old it is', async (t) => {
  const first = await startCache(t);
  const given = { store: away(first.store) };
  const { tell, log, cache } = await restart(t, first, false, given);
  t.is(tell(), 'a in force');
  t.false(cache.state().inForce?.isAtOnce);
  t.regex(
    log.lines.join('\n'),
    /^warning The store a store cannot be read \(no route to it\): the last good revision a, .* old, is in force: 2 domains, 2 limits$/,
  );
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
  const { tell, log, publish } = await starting;
  t.is(tell(), 'a in force');
  t.deepEqual(
    log.lines.map((line) => line.replace(/: the last good .*/, '')),
    [
      'info Reading a store takes its time; waiting for it',
      'warning The store a store cannot be read (no answer within 5s, it is still asked)',
    ],
  );
  read.resolve(revisionOf('b'));
  publish('b');
  t.is(tell(), 'a in force, b on trial');
  t.is(clock.pending, 0);
});

test('started while neither the store nor the copy can be read: both are said', async (t) => {
  const first = await startCache(t);
  await first.cache.close();
  writeFileSync(join(first.folder, 'last-good.revision.json'), 'damaged');
  const { tell, log } = await restart(t, first, false, { store: away(first.store) });
  t.is(tell(), 'nothing in force');
  t.regex(log.lines.join('\n'), /^error The last good revision cannot be restored: /);
});

test('started on a removal that nobody has seen: it is held back', async (t) => {
  const first = await startCache(t, { rollsOut: false });
  await first.cache.close();
  first.publish('z');
  const next = await restart(t, first, false, { rollsOut: false });
  t.is(next.tell(), 'a in force, z held back');
});

test('started without a rollout on something new: it is in force, and nothing else is said to be', async (t) => {
  const first = await startCache(t, { rollsOut: false });
  await first.cache.close();
  first.publish('b');
  const next = await restart(t, first, false, { rollsOut: false });
  t.deepEqual(next.log.lines, ['notice Revision b is in force: 2 domains, 2 limits']);
});

test('started with an empty state directory during a trial: what was in force is read from the store', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  first.memory.inForce = { revision: 'a', content: contentOf('a') };
  t.is((await restart(t, first, true)).tell(), 'a in force, b on trial');
});

test('started with an empty state directory, and no memory: the newest is in force', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  t.is((await restart(t, first, true)).tell(), 'b in force');
});

test('started where what was in force is no more in the store: the newest is tried, and others keep theirs', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  first.memory.inForce = { revision: 'lost', content: 'lost' };
  t.is((await restart(t, first, true)).tell(), 'nothing in force, b on trial');
});

test('started where what was in force is invalid by now: that is said, and it is not served', async (t) => {
  const first = await startCache(t);
  for (const name of ['x', 'b']) first.publish(name);
  first.memory.inForce = { revision: 'x', content: 'as it was' };
  const next = await restart(t, first, true);
  t.is(next.tell(), 'nothing in force, b on trial');
  t.true(
    next.log.lines.some((line) => /Revision x .*is not served/.test(line)),
    next.log.lines.join(),
  );
});

test('started where the state directory knows less than the record: the record counts', async (t) => {
  const first = await startCache(t);
  const second = await startCache(t, { store: first.store, memory: first.memory, rollsOut: false });
  first.publish('b');
  first.publish('c');
  first.memory.inForce = { revision: 'b', content: contentOf('b') };
  await second.cache.close();
  t.is((await restart(t, first)).tell(), 'b in force, c on trial');
});

test('started on what is in force by the record: it is in force, without a trial', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  first.memory.inForce = { revision: 'b', content: contentOf('b') };
  t.is((await restart(t, first)).tell(), 'b in force');
  t.is((await restart(t, first, true)).tell(), 'b in force');
});

test('started on what was taken back: nobody ever gets it', async (t) => {
  const first = await startCache(t);
  first.publish('b');
  takeBack(first);
  first.memory.inForce = { revision: 'a', content: contentOf('a') };
  for (const isFresh of [false, true]) {
    const next = await restart(t, first, isFresh);
    t.is(next.tell(), 'a in force, b refused');
    t.is(next.cache.state().newest?.problems.at(-1)?.message, 'taken back: errors');
  }
});

test('started on what was taken back, and nothing else is known: workers get nothing', async (t) => {
  const memory = createMemory();
  memory.verdicts.set('b', isTakenBack);
  const { tell, log } = await startCache(t, { memory, first: revisionOf('b') });
  t.is(tell(), 'nothing in force, b refused');
  t.true(log.lines.some((line) => line.includes('workers get nothing until there is one')));
});

test('started on what was held back: it is held back still, with its reason', async (t) => {
  const first = await startCache(t);
  first.publish('z');
  const reason = first.cache.state().newest?.problems.at(-1)?.message ?? '';
  t.regex(reason, /^held back: no domain would be left/);
  first.memory.verdicts.set('z', { revision: 'other', outcome: 'held_back', reason });
  for (const isFresh of [false, true]) {
    const next = await restart(t, first, isFresh);
    t.is(next.tell(), isFresh ? 'nothing in force, z held back' : 'a in force, z held back');
    t.is(next.cache.state().newest?.problems.at(-1)?.message, reason);
  }
});

test('started on what was approved: it goes on', async (t) => {
  const first = await startCache(t, { rollsOut: false });
  first.publish('z');
  first.memory.verdicts.set('z', { revision: 'other', outcome: 'approved', reason: 'meant' });
  t.is((await restart(t, first, false, { rollsOut: false })).tell(), 'z in force');
});

test('a file of an invalid revision has its name in the repository, in the state and in the log', async (t) => {
  const { cache, log, publish } = await startCache(t, { repositoryFolder: 'rules/' });
  publish('x');
  t.deepEqual(cache.state().newest?.problems[0]?.file, 'rules/a.yaml');
  t.true(log.lines.some((line) => line.includes('is not served: rules/a.yaml:')));
});
