// Tests a shared text that moves from beside the rules into an engine.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { RedisSharedText } from '../../control-plane/server/record/engines/redis-shared-text.ts';
import { MovingText } from '../../control-plane/server/record/moving-text.ts';
import { isMovedText } from '../../control-plane/server/record/record.ts';
import { createGitSharedText } from '../../control-plane/server/store/git-shared-text.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository, gitEnvironment } from '../support/git-repository.ts';
import { ownedByFile } from '../support/owner.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

const owner = ownedByFile(test);
let server: RedisServer;

test.before(async () => {
  server = await startRedisServer(owner);
});

function createTargets(t: ExecutionContext) {
  const repository = createGitRepository(t);
  const name = randomUUID();
  let states = 0;
  const openBefore = () => {
    const options = {
      ...{ url: repository.url, ref: 'main', folder: '', pollMs: 50, leastPollMs: 0 },
      ...{ timeoutMs: 20_000, fetchTimeoutMs: 20_000 },
      stateDirectory: join(repository.folder, `state-${states++}`),
      committer: { name: 'Ratelane', email: 'ratelane@example.test' },
    };
    const text = createGitSharedText({ options, environment: gitEnvironment }, 'text');
    t.teardown(text.close);
    return text;
  };
  const openEngine = () => {
    const address = { host: '127.0.0.1', port: server.port };
    const noTls = { ca: undefined, cert: undefined, key: undefined };
    const access = { password: '', passwordFile: undefined, tls: noTls };
    const target = {
      kind: 'redis',
      address,
      isTls: false,
      database: 0,
      username: undefined,
    } as const;
    return new RedisSharedText(target, name, access);
  };
  return {
    repository,
    openBefore,
    openEngine,
    open: () => new MovingText(openEngine(), openBefore()),
  };
}

test('the text beside the rules is the record until the first write, which is made only to the engine', async (t) => {
  const { openBefore, openEngine, open } = createTargets(t);
  await openBefore().swap(undefined, 'taken back');
  const [one, other] = [open(), open()];
  const [read, late] = [await one.read(), await other.read()];
  t.is(read?.text, 'taken back');
  t.deepEqual(read, await one.read(), 'it is the same each time');
  t.is((await one.swap(read?.version, 'moved')).kind, 'written');
  t.is((await other.swap(late?.version, 'moved too')).kind, 'stale');
  for (const each of [one, other, openEngine()]) t.is((await each.read())?.text, 'moved');
  const old = openBefore();
  await eventually('what is beside the rules names the engine', async () =>
    isMovedText((await old.read())?.text ?? ''),
  );
  t.regex((await old.read())?.text ?? '', /in Redis at 127\.0\.0\.1/);
  await openEngine().setAside((await one.read())?.version ?? '');
  t.is(await open().read(), undefined, 'and is no record for an engine');
});

test('a text that is later removed from the engine is not replaced by the one beside the rules', async (t) => {
  const { openBefore, openEngine, open } = createTargets(t);
  await openBefore().swap(undefined, 'of before');
  const [moving, late] = [open(), open()];
  const read = await moving.read();
  const moved = await moving.swap(read?.version, 'moved');
  for (const each of [moving, late]) t.is((await each.read())?.text, 'moved');
  await openEngine().setAside(moved.kind === 'written' ? moved.version : '');
  for (const each of [moving, late]) t.is(await each.read(), undefined);
});

test('without one beside the rules, the engine has the record from the start', async (t) => {
  const { open, openEngine } = createTargets(t);
  const text = open();
  t.is(await text.read(), undefined);
  t.is((await text.swap(undefined, 'first')).kind, 'written');
  t.is((await openEngine().read())?.text, 'first');
});

test('while the text beside the rules cannot be read, the record is unknown', async (t) => {
  const { repository, openBefore, open } = createTargets(t);
  await openBefore().swap(undefined, 'taken back');
  repository.hide();
  const text = open();
  await t.throwsAsync(text.read());
  repository.show();
  t.is((await text.read())?.text, 'taken back');
});

test('an engine with a record is the only source', async (t) => {
  const { repository, openEngine, open } = createTargets(t);
  await openEngine().swap(undefined, 'first');
  repository.hide();
  t.is((await open().read())?.text, 'first');
});

test('an unreadable text beside the rules is set aside there', async (t) => {
  const { openBefore, open } = createTargets(t);
  await openBefore().swap(undefined, 'damaged');
  const text = open();
  const version = (await text.read())?.version ?? '';
  t.regex(await text.setAside(version), /unreadable$/);
  t.is(await text.read(), undefined);
  t.is(await openBefore().read(), undefined);
});
