// Tests the path from a store to the snapshots in force, on real directories and repositories: what is served when
// revisions are added or removed, are invalid, or cannot be read, also across restarts.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Building } from '../../../control-plane/server/snapshot/building.ts';
import { SnapshotCache } from '../../../control-plane/server/snapshot/cache.ts';
import { createDirectoryStore } from '../../../control-plane/server/store/directory-store.ts';
import { GitStore } from '../../../control-plane/server/store/git-store.ts';
import type { ConfigStore } from '../../../control-plane/server/store/store.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createGitRepository,
  type GitRepository,
  gitEnvironment,
} from '../../support/git-repository.ts';
import { toGitStoreOptions } from '../../support/git-store.ts';
import { createRecordedLog, type RecordedLog } from '../../support/recorded-log.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const { rateLimitConfig } = loadProtos();
const anyNode = { id: 'worker-1', cluster: '', metadata: new Map<string, string>() };

/** On a busy machine a store's first answer takes seconds; another test covers that. */
const patientClock: Clock = {
  ...systemClock,
  after: (ms, task) => systemClock.after(20 * ms, task),
};

async function start(
  t: ExecutionContext,
  openStore: (log: RecordedLog) => ConfigStore,
  stateDirectory: string,
) {
  const log = createRecordedLog();
  const store = openStore(log);
  let approved: string | undefined;
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024, rollsOut: false };
  const cache = new SnapshotCache({
    store,
    building: new Building({ options, encode: rateLimitConfig.serialize, clock: patientClock }),
    stateDirectory,
    allowsRemoval: false,
    memory: () => ({
      isKnown: true,
      rollsOut: false,
      inForce: undefined,
      wasInForce: () => false,
      ...{ wasTakenBack: () => false, wasServed: () => false, isRolling: false },
      verdictOf: (revision) =>
        revision === approved
          ? { revision, outcome: 'approved', reason: 'the shop is closed' }
          : undefined,
    }),
    log,
    clock: patientClock,
  });
  const stop = async () => {
    await cache.close();
    await store.close();
  };
  t.teardown(stop);
  await cache.start();
  return {
    store,
    cache,
    log,
    stop,
    /** Names of the resources that a node gets; 'nothing' when it is sent none. */
    served() {
      const snapshot = cache.current(anyNode);
      return snapshot === undefined ? 'nothing' : [...snapshot.resources.keys()].join(' ');
    },
    version: () => cache.current(anyNode)?.version,
    approve(revision: string) {
      approved = revision;
      cache.happen({ kind: 'reconsider' });
    },
  };
}

function startOnDirectory(t: ExecutionContext, root: string, state = 'state') {
  const stateDirectory = join(root, state);
  const openStore = (log: RecordedLog) =>
    createDirectoryStore({
      options: { directory: join(root, 'rules'), stateDirectory },
      log,
      clock: systemClock,
      timing: { quiet: 10, patience: 50, poll: 3_600_000 },
    });
  return start(t, openStore, stateDirectory);
}

function startOnGit(t: ExecutionContext, repository: GitRepository, state = 'state') {
  const stateDirectory = join(repository.folder, state);
  const openStore = (log: RecordedLog) =>
    new GitStore({
      options: toGitStoreOptions(repository, { ref: 'main', pollMs: 3_600_000, stateDirectory }),
      log,
      clock: systemClock,
      environment: gitEnvironment,
    });
  return start(t, openStore, stateDirectory);
}

const broken = ruleText('b', 1).replace('year', 'yaer');

test('a change of a directory comes into force', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('a', 1) });
  const { cache, served, log } = await startOnDirectory(t, folder.path);
  t.is(served(), 'a');
  let changes = 0;
  cache.onChange(() => changes++);
  folder.write('rules/b.yaml', ruleText('b', 1));
  await eventually('both domains', () => served() === 'a b');
  t.is(changes, 1);
  const { inForce, newest, stale, counts } = cache.state();
  t.like(inForce, { domains: ['a', 'b'], served: { domains: 2, limits: 2 }, leftOut: [] });
  t.is(inForce?.revision.id, newest?.revision.id);
  t.true(newest?.valid);
  t.is(stale, undefined);
  t.deepEqual(counts, { accepted: 2, refused: 0, takenBack: 0 });
  t.deepEqual(
    log.lines.map((line) => line.replace(/[0-9a-f]{12}/, '<id>')),
    [
      'notice Revision <id> is in force: 1 domain, 1 limit',
      'info Revision <id> is in force: 2 domains, 2 limits',
    ],
  );
});

test('an invalid revision changes nothing and is reported everywhere with the same text', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('a', 1) });
  const { cache, served, version, log } = await startOnDirectory(t, folder.path);
  const before = cache.state().inForce?.revision.id ?? '';
  const good = version();
  folder.write('rules/b.yaml', broken);
  await eventually('the refusal', () => cache.state().newest?.valid === false);
  t.is(served(), 'a');
  t.is(version(), good);
  const { newest, inForce, stale, counts } = cache.state();
  t.is(inForce?.revision.id, before);
  t.is(stale?.reason, 'newest_invalid');
  t.deepEqual(counts, { accepted: 1, refused: 1, takenBack: 0 });
  t.regex(formatProblems(newest?.problems ?? []), /^b\.yaml:4:25: error: .*'yaer'/);
  const bad = newest?.revision.id.slice(0, 12);
  t.deepEqual(log.lines.slice(1), [
    `error Revision ${bad} of ${folder.path}/rules is not served: b.yaml:4:25: ${newest?.problems[0]?.message}; 1 error: revision ${before.slice(0, 12)} stays in force`,
  ]);
  folder.write('rules/b.yaml', ruleText('b', 1));
  await eventually('the repair', () => served() === 'a b');
  t.is(cache.state().stale, undefined);
  t.regex(log.lines.at(-1) ?? '', /^notice Revision .* is in force: 2 domains, 2 limits$/);
});

test('a change of only the groups reaches the nodes', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': 'domain: a\n' });
  folder.write('rules/b.yaml', ruleText('b', 1));
  const { cache, served } = await startOnDirectory(t, folder.path);
  t.is(cache.groupOf(anyNode), 'default');
  let changes = 0;
  cache.onChange(() => changes++);
  const group = (id: string) => `groups: [{ name: g, match: { id: ${id} }, domains: b }]`;
  folder.write('rules/node-groups.yaml', group('worker-*'));
  await eventually('the group', () => served() === 'b');
  t.is(cache.groupOf(anyNode), 'g');
  folder.write('rules/node-groups.yaml', group('other-*'));
  await eventually('the default', () => served() === 'a b');
  t.is(changes, 2);
});

test('after a restart without the store the last good revision is in force, marked stale', async (t) => {
  const repository = createGitRepository(t);
  const id = repository.push({ 'a.yaml': ruleText('a', 1) });
  const first = await startOnGit(t, repository);
  const version = first.version();
  await first.stop();
  repository.hide();
  const second = await startOnGit(t, repository);
  t.is(second.version(), version);
  const { stale, inForce, store } = second.cache.state();
  t.is(stale?.reason, 'store_unreachable');
  t.is(inForce?.revision.id, id);
  t.false(store.reachable);
  repository.show();
  repository.push({ 'b.yaml': ruleText('b', 1) });
  await second.store.trigger();
  t.is(second.served(), 'a b');
  t.is(second.cache.state().stale, undefined);
});

test('the revision saved from another store is not served', async (t) => {
  const [one, other] = [createRulesFolder(t), createRulesFolder(t)];
  one.write('rules/a.yaml', ruleText('a', 1));
  await (await startOnDirectory(t, one.path)).stop();
  mkdirSync(join(other.path, 'state'));
  const stored = readFileSync(join(one.path, 'state/last-good.revision.json'));
  writeFileSync(join(other.path, 'state/last-good.revision.json'), stored);
  const { served, log } = await startOnDirectory(t, other.path);
  t.is(served(), 'nothing');
  t.regex(
    log.lines[0] ?? '',
    /no earlier revision is stored: workers get no rules until there is one$/,
  );
});

test('a damaged last good revision is reported, and not served', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('a', 1) });
  await (await startOnDirectory(t, folder.path)).stop();
  const file = join(folder.path, 'state/last-good.revision.json');
  writeFileSync(file, readFileSync(file).subarray(0, 100));
  folder.write('rules/a.yaml', broken);
  const { served, cache, log } = await startOnDirectory(t, folder.path);
  t.is(served(), 'nothing');
  t.is(cache.state().inForce, undefined);
  t.is(
    log.lines.at(-1),
    `error The last good revision cannot be restored: ${file} is not a stored revision, or it was changed; it is kept as last-good.revision.json.unreadable`,
  );
  folder.write('rules/a.yaml', ruleText('a', 2));
  await eventually('the repair', () => served() === 'a');
});

test('a revision that cannot be saved is still served', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('a', 1) });
  // A file in the place of the folder: no user can write into it, not even root.
  folder.write('state', '');
  chmodSync(join(folder.path, 'state'), 0o400);
  const { served, log, cache } = await startOnDirectory(t, folder.path);
  await cache.close();
  t.is(served(), 'a');
  t.true(
    log.lines.some((line) =>
      /cannot be stored for the next start: .*; it is still served/.test(line),
    ),
  );
});

test('a push and a trigger bring a revision into force, with its author', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': ruleText('a', 1) });
  const { store, served, log } = await startOnGit(t, repository);
  const id = repository.push({ 'b.yaml': ruleText('b', 1) }, 'limits for b\n\nas agreed');
  await store.trigger();
  t.is(served(), 'a b');
  t.is(
    log.lines.at(-1),
    `info Revision ${id.slice(0, 12)} ("limits for b", Ann <ann@example.test>) is in force: 2 domains, 2 limits`,
  );
});

test('a commit declares in advance that it is meant to remove everything', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': ruleText('a', 1) });
  const { cache, store, served } = await startOnGit(t, repository);
  repository.push({ 'a.yaml': undefined }, 'oops');
  await store.trigger();
  await eventually('it is held back', () => cache.state().newest?.isHeldBack === true);
  t.is(served(), 'a');
  repository.push({ 'notes.txt': 'x' }, 'it is meant\n\nAllow-Removal: yes');
  await store.trigger();
  await eventually('it is served', () => served() === '');
});
