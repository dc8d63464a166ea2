// Tests how a lane handles the answers to its changes, and changes that exceed its bound; its other behaviour is in the
// contract of counter stores.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { Answer, Connection } from './connection.ts';
import { MemcachedLane, maxPendingChanges } from './memcached-lane.ts';
import { createMemcachedMetrics } from './memcached-metrics.ts';

/** `answer` returns the server's answer to a command, or undefined for no answer. */
function setUp(answer: (command: string) => Answer | undefined, isReachable = true) {
  const metrics = createStubMetrics();
  const refusals: string[] = [];
  const idle = Promise.withResolvers<void>();
  const connection: Connection = {
    send(command, onAnswer) {
      const reply = answer(command);
      if (reply !== undefined) setImmediate(onAnswer, reply);
    },
    destroy: () => {},
  };
  const lane = new MemcachedLane({
    open: async () => {
      if (!isReachable) throw new Error('no route to it');
      return connection;
    },
    isAway: () => false,
    clock: createManualClock(),
    metrics: createMemcachedMetrics(metrics),
    jitterMaxSeconds: 0,
    knownExpiries: createKnownExpiries(),
    onFailure: () => {},
    onAnswer: () => {},
    refusals: { report: (text) => refusals.push(text), recover: () => undefined, flush: () => {} },
    onIdle: idle.resolve,
  });
  return {
    lane,
    refusals,
    stats: () => Object.fromEntries(metrics.snapshot()),
    /** Resolves when the lane has no pending work. */
    idle: idle.promise,
  };
}

test('hits that the server refuses to add are dropped, and the refusal is logged with its remedy', async (t) => {
  const remedies = {
    'SERVER_ERROR out of memory storing object': 'give it more memory (memcached -m)',
    'SERVER_ERROR object too large for cache': 'raise its item size (memcached -I)',
    'CLIENT_ERROR unauthenticated':
      'workers send no credentials: start it without authentication (memcached -S, -Y)',
    'ERROR Too many open connections':
      'raise its connection limit (memcached -c), or write a smaller MEMSTORE_MAX_IDLE_CONNS (MEMCACHE_MAX_IDLE_CONNS)',
    'CLIENT_ERROR cannot increment or decrement non-numeric value':
      'another program has written it: set a CACHE_KEY_PREFIX that no other program uses',
    '-ERR unknown command':
      'is it Redis? then write BACKEND_TYPE=redis, and its address in KVSTORE_URL (REDIS_URL)',
    'CLIENT_ERROR bad data chunk': undefined,
  };
  for (const [reply, remedy] of Object.entries(remedies)) {
    const { lane, idle, refusals, stats } = setUp((command) =>
      command.startsWith('incr') ? 'NOT_FOUND' : reply,
    );
    lane.change('add', 'k', 1, 60);
    lane.flush();
    await idle;
    t.true(lane.isIdle, 'reported once all are over');
    const shown = remedy === undefined ? '' : `; ${remedy}`;
    t.deepEqual(refusals, [`hits on "k" are not counted: it answered "${reply}"${shown}`]);
    t.deepEqual(stats(), {
      'ratelimit.memcache.increment.__code=miss': 1,
      'ratelimit.memcache.add.__code=error': 1,
    });
  }
});

test('a change beyond 65,536 pending ones is not counted, and only hits are an error', (t) => {
  const { lane, refusals, stats } = setUp(() => undefined);
  for (let index = 0; index < maxPendingChanges; index++) lane.change('add', `k${index}`, 1, 60);
  t.deepEqual(refusals, []);
  lane.change('add', 'other', 1, 60);
  lane.change('add', 'another', 1, 60);
  lane.change('refund', 'other', 1, 60);
  t.deepEqual(refusals, Array(3).fill('hits are not counted: 65536 changes are already pending'));
  t.deepEqual(stats(), { 'ratelimit.memcache.increment.__code=error': 2 });
});

test('when changes are lost with a failed connection attempt, only hits are errors', async (t) => {
  const { lane, idle, stats } = setUp(() => undefined, false);
  lane.change('add', 'a', 1, 60);
  lane.change('add', 'b', 1, 60);
  lane.change('refund', 'c', 1, 60);
  lane.flush();
  await idle;
  t.deepEqual(stats(), { 'ratelimit.memcache.increment.__code=error': 2 });
});
