// Tests a rule that ends by itself, on whole workers with each store: hits that the wider rule counted before it still
// count after it.
import test, { type ExecutionContext } from 'ava';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { eventually } from '../../support/eventually.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { patientClock } from '../../support/memcached-store.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const hourMs = 3_600_000;
const usual = `domain: d
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 3}}
`;

const stores: Readonly<Record<string, (t: ExecutionContext) => Promise<Record<string, string>>>> = {
  memory: async () => ({ BACKEND_TYPE: 'memory' }),
  async Redis(t) {
    const redis = await startRedisServer(t);
    return { BACKEND_TYPE: 'redis', KVSTORE_TYPE: 'SINGLE', KVSTORE_URL: redis.url };
  },
  async memcached(t) {
    const server = await startMemcachedServer(t);
    return { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.url };
  },
};

for (const [store, start] of Object.entries(stores)) {
  test(`a limit that is lifted for a time resumes at its previous count, in ${store}`, async (t) => {
    let aheadMs = 0;
    const clock = { ...patientClock, wallMs: () => patientClock.wallMs() + aheadMs };
    const folder = createRulesFolder(t, { 'config/d.yaml': usual });
    const { decide, page, log } = await startWorker(t, {
      env: {
        ...(await start(t)),
        RUNTIME_ROOT: folder.path,
        RUNTIME_WATCH_ROOT: 'false',
        LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      },
      clock,
    });
    const ask = async (user: string) => {
      const { text } = await decide(`user=${user}`);
      const { overallCode, statuses } = JSON.parse(text);
      return `${overallCode} ${statuses[0].currentLimit ? (statuses[0].limitRemaining ?? 0) : 'unlimited'}`;
    };
    t.is(await ask('ada'), 'OK 2');
    t.is(await ask('ada'), 'OK 1');
    for (let round = 0; round < 4; round++) await ask('bob');
    t.is(await ask('bob'), 'OVER_LIMIT 0');

    const until = toTimeText(clock.wallMs() + hourMs);
    const lift = (user: string) =>
      `  - {key: user, value: ${user}, until: '${until}', rate_limit: {unlimited: true}}\n`;
    folder.write('config/d.yaml', `${usual}${lift('ada')}${lift('bob')}`);
    await eventually('the lifts', async () => (await page('/rlconfig')).includes('d.user_bob'));
    for (let round = 0; round < 5; round++) {
      t.is(await ask('ada'), 'OK unlimited');
      t.is(await ask('bob'), 'OK unlimited');
    }

    aheadMs = hourMs;
    await eventually('the end', async () => !(await page('/rlconfig')).includes('d.user_ada'));
    t.is(await ask('ada'), 'OK 0');
    t.is(await ask('ada'), 'OVER_LIMIT 0');
    t.is(await ask('bob'), 'OVER_LIMIT 0');
    t.true(log.lines.includes('notice 2 rules ended: requests now match the rules without them'));
  });
}
