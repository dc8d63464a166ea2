// Tests sliding windows and token buckets through the counter store on real Redis servers: what can fail between the
// worker and its scripts.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Limiter, LimiterAlgorithm } from '../../../shared/rules/limit-shape.ts';
import { limiterAlgorithms } from '../../../shared/rules/limit-shape.ts';
import type { CounterStore, Hit } from '../../../worker/counters/store.ts';
import { type CountOutcome, countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore, openRedisStore } from '../../support/redis-store.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const day = 86_400;

/** A hit on a limit of 100 a day. */
function hitOn(algorithm: LimiterAlgorithm, key: string): Hit {
  const limiter: Limiter = { algorithm, limit: 100, capacity: 100, countsOver: false };
  const windowStart = Math.floor(Date.now() / 1000 / day) * day;
  return createHit({
    key,
    limit: 100,
    windowSeconds: day,
    limiter: { ...limiter, windowStart, windowSeconds: day, isEven: true },
  });
}

function count(store: CounterStore, hits: readonly Hit[]): Promise<CountOutcome> {
  return countOn(store, hits);
}

test('scripts that the server has dropped are sent again, and no hit is lost or counted twice', async (t) => {
  const server = await startRedisServer(t);
  const store = await openRedisStore(t, server.url);
  for (let after = 1; after <= 3; after++) {
    for (const algorithm of limiterAlgorithms) {
      const { error, after: counted } = await count(store, [hitOn(algorithm, algorithm)]);
      t.is(error, undefined);
      t.deepEqual(counted, [after]);
    }
    await server.command('SCRIPT', 'FLUSH');
  }
  await store.close(0);
});

test('a server without scripts fails the limits that need them, with a remedy, and counts the others', async (t) => {
  const server = await startRedisServer(t, { args: ['--rename-command', 'EVALSHA', ''] });
  const store = await openRedisStore(t, server.url);
  const { error } = await count(store, [hitOn('token_bucket', 'b')]);
  t.regex(
    error?.message ?? '',
    /: no scripts \(EVALSHA\), which token_bucket needs for "b": ERR unknown command 'EVALSHA'; set algorithm: fixed_window, or name a server with scripts in KVSTORE_URL$/,
  );
  t.deepEqual((await count(store, [createHit({ key: 'fixed_1' })])).after, [1]);
  await store.close(0);
});

test('a server that refuses scripts is reported once, in the log and on the debug page, until it accepts them', async (t) => {
  const server = await startRedisServer(t);
  const store = createRecordedRedisStore(server.url, { type: 'single' });
  await store.connect(AbortSignal.timeout(60_000));
  const countLines = (text: string) => store.log.lines.filter((line) => line.includes(text)).length;
  await server.command('ACL', 'SETUSER', 'default', '-@scripting');
  for (let again = 0; again < 5; again++) {
    for (const algorithm of limiterAlgorithms) {
      const { error } = await count(store, [hitOn(algorithm, algorithm)]);
      t.regex(error?.message ?? '', /no scripts \(EVALSHA\), which \w+ needs/);
    }
  }
  t.is(countLines('scripts are refused'), 1);
  t.regex(
    store.log.lines.join('\n'),
    /error key-value store \S+: scripts are refused \(EVALSHA\): NOPERM .*; allow the user to run scripts \(ACL SETUSER NAME \+eval \+evalsha\),/,
  );
  t.regex(
    store.state().detail,
    /no scripts \(EVALSHA\): NOPERM .*; sliding windows and token buckets fail$/,
  );
  t.true(store.state().healthy);
  await server.command('ACL', 'SETUSER', 'default', '+@scripting');
  t.is((await count(store, [hitOn('token_bucket', 'b')])).error, undefined);
  t.is(countLines('scripts are executed again'), 1);
  t.notRegex(store.state().detail, /no scripts/);
  await store.close(0);
});

/** Each makes a server refuse writes with this code, and returns a function that ends it. */
const failures = {
  OOM: async (server: RedisServer) => {
    await server.command('CONFIG', 'SET', 'maxmemory', '1mb');
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    return () => server.command('CONFIG', 'SET', 'maxmemory', '0');
  },
  MISCONF: async (server: RedisServer) => {
    await server.command('CONFIG', 'SET', 'dbfilename', 'unwritable');
    const folder = await mkdtemp(join(tmpdir(), 'ratelane-unwritable-'));
    await server.command('CONFIG', 'SET', 'dir', folder);
    await rm(folder, { recursive: true });
    await server.command('CONFIG', 'SET', 'save', '3600 1');
    // A server that cannot even fork reports that, with the same consequence.
    await server.command('BGSAVE').catch(() => {});
    await eventually('the snapshot fails', async () =>
      String(await server.command('INFO')).includes('rdb_last_bgsave_status:err'),
    );
    return () => server.command('CONFIG', 'SET', 'save', '');
  },
  READONLY: async (server: RedisServer) => {
    await server.command('REPLICAOF', '127.0.0.1', '1');
    return () => server.command('REPLICAOF', 'NO', 'ONE');
  },
  NOREPLICAS: async (server: RedisServer) => {
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    return () => server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
  },
  NOPERM: async (server: RedisServer) => {
    await server.command('ACL', 'SETUSER', 'default', 'resetkeys', '~other*');
    return () => server.command('ACL', 'SETUSER', 'default', 'allkeys');
  },
};

for (const [code, begin] of Object.entries(failures)) {
  test(`a server that refuses writes is not mistaken for one without scripts: ${code}`, async (t) => {
    const server = await startRedisServer(t, { args: ['--enable-protected-configs', 'yes'] });
    const store = await openRedisStore(t, server.url);
    for (const algorithm of limiterAlgorithms)
      await count(store, [hitOn(algorithm, `before_${algorithm}`)]);
    const end = await begin(server);
    for (const algorithm of limiterAlgorithms) {
      const { error } = await count(store, [hitOn(algorithm, algorithm)]);
      t.true(error?.message.startsWith(`key-value store ${server.url}: ${code} `), error?.message);
    }
    const logged = store.log.lines.filter((line) => line.includes('a decision failed'));
    t.is(logged.length, 1);
    t.true(logged[0]?.includes(`: ${code} `), logged[0]);
    t.notRegex(store.log.lines.join('\n'), /scripts are refused/);
    t.notRegex(store.state().detail, /no scripts/);
    await end();
    t.is((await count(store, [hitOn('token_bucket', 'b')])).error, undefined);
  });
}

test('simultaneous hits on one key are one command, with an answer for each', async (t) => {
  const server = await startRedisServer(t);
  const store = await openRedisStore(t, server.url);
  await count(store, [hitOn('sliding_window', 'warm')]);
  await server.command('CONFIG', 'RESETSTAT');
  const outcomes = await Promise.all(
    Array.from({ length: 150 }, () => count(store, [hitOn('sliding_window', 'hot')])),
  );
  t.is(outcomes.filter(({ after: [after = 0] }) => after <= 100).length, 100);
  t.regex(String(await server.command('INFO', 'commandstats')), /cmdstat_evalsha:calls=1,/);
  await store.close(0);
});

test('in a cluster each counter is read where its slot is', async (t) => {
  const cluster = await startRedisCluster(t);
  const store = await openRedisStore(t, cluster.url, { type: 'cluster', clusterParallelism: 1 });
  const keys = Array.from({ length: 12 }, (_, index) => `key-${index}`);
  for (const expected of [1, 2]) {
    const hits = keys.map((key) => hitOn('token_bucket', key));
    const { error, after } = await count(store, hits);
    t.is(error, undefined);
    t.deepEqual(
      after,
      keys.map(() => expected),
    );
  }
  await store.close(0);
});

test('with a limit that stops the others, a limiter with room left is not counted', async (t) => {
  const server = await startRedisServer(t);
  const store = await openRedisStore(t, server.url);
  const full = createHit({ key: 'full_1', limit: 0 });
  const result = countOn(store, [full, hitOn('sliding_window', 's')], { mode: 'add-unless-over' });
  t.is((await result).error, undefined);
  t.is(await server.command('GET', 's'), null);
  await store.close(0);
});

for (const algorithm of limiterAlgorithms) {
  test(`${algorithm}: hits that were sent but not answered are counted at most once`, async (t) => {
    const server = await startRedisServer(t);
    const proxy = await startTcpProxy(t, server.port);
    const store = createRecordedRedisStore(`127.0.0.1:${proxy.port}`, { type: 'single', size: 2 });
    await store.connect(AbortSignal.timeout(60_000));
    let sent = 0;
    let answered = 0;
    let lost = 0;
    for (let round = 0; round < 30; round++) {
      const isCut = round % 2 === 0;
      // The server counts, and its answer is lost.
      const cut = isCut ? proxy.cutNextReply('EVALSHA') : undefined;
      const outcomes = Array.from({ length: 3 }, () => count(store, [hitOn(algorithm, 'k')]));
      sent += outcomes.length;
      if (!isCut) {
        // At another moment of the exchange each time.
        for (let turn = 0; turn < round % 6; turn++) await new Promise(setImmediate);
        proxy.dropAll();
      }
      await cut;
      for (const outcome of outcomes) {
        if ((await outcome).error === undefined) answered++;
        else lost++;
      }
      await eventually('a connection', async () => {
        const { error } = await count(store, [{ ...hitOn(algorithm, 'k'), hits: 0 }]);
        return error === undefined;
      });
    }
    const direct = await openRedisStore(t, server.url);
    const { after } = await count(direct, [{ ...hitOn(algorithm, 'k'), hits: 0 }]);
    const [used = 0] = after;
    t.true(answered <= used && used <= sent, `${answered} answered, ${used} counted, ${sent} sent`);
    t.true(lost > 0, 'some answers were lost');
    await direct.close(0);
    await store.close(0);
  });
}
