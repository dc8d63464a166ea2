// Tests the total that several servers on one store assign, while servers, clocks and the store fail in various ways.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import {
  createQuotaWorld,
  QuotaEnvoy,
  type QuotaWorld,
  runEnvoys,
} from '../../test/support/quota-envoy.ts';
import { withCount } from '../../test/support/with-count.ts';
import { MemoryStore } from '../counters/memory-store.ts';

const limit = 100;
const rule = (unit: string, requests: number) =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: ${unit}, requests_per_unit: ${requests}}\n`;
const aSecond = rule('second', limit);
const bucket = { k: 'a' };
const always = 1_000;

type Servers = ReturnType<typeof createServers>;

function createServers(yaml = aSecond) {
  const first = createQuotaWorld(yaml);
  const { clock, log } = first;
  let inner = new MemoryStore({ clock, log });
  const servers = {
    worlds: [] as QuotaWorld[],
    add(aheadMs = 0): QuotaWorld {
      const store = withCount(inner, (request) => {
        for (const { key } of request.hits)
          servers.longestKey = Math.max(servers.longestKey, Buffer.byteLength(key));
        if (!servers.isAway) inner.count(request);
        else setImmediate(() => request.settle(new AppError('store', 'it is away')));
      });
      const world = createQuotaWorld(yaml, { beside: { clock, store }, aheadMs });
      servers.worlds.push(world);
      return world;
    },
    /** Empties the store. */
    lose() {
      inner = new MemoryStore({ clock, log });
    },
    /** Whether the store fails. */
    isAway: false,
    /** The longest key that was counted. */
    longestKey: 0,
  };
  return servers;
}

const toBusy = (...worlds: readonly [QuotaWorld, QuotaWorld]) =>
  worlds.map((world) => new QuotaEnvoy(world, bucket, always)) as [QuotaEnvoy, QuotaEnvoy];

/**
 * Runs for `seconds`; returns the highest total assigned at the end of a second, and that at the end of the last one.
 */
async function run(servers: Servers, envoys: readonly QuotaEnvoy[], seconds: number) {
  let most = 0;
  let last = 0;
  for (let second = 0; second < seconds; second++) {
    await runEnvoys(servers.worlds, envoys, 1);
    last = envoys.reduce((sum, envoy) => sum + envoy.assigned(1), 0);
    most = Math.max(most, last);
  }
  return { most, last };
}

for (const aheadMs of [0, 1_000, -1_000]) {
  const clocks = aheadMs === 0 ? 'one clock' : `a clock ${aheadMs} ms ahead`;

  test(`a new server has what is free until others give it its part, with ${clocks}`, async (t) => {
    const servers = createServers();
    const one = new QuotaEnvoy(servers.add(), bucket, always);
    await run(servers, [one], 12);
    const envoys = [one, new QuotaEnvoy(servers.add(aheadMs), bucket, always)] as const;
    const { most } = await run(servers, envoys, 20);
    t.true(most <= limit, `${most}`);
    for (const envoy of envoys) t.true(Math.abs(envoy.assigned(1) - limit / 2) <= 2);
  });

  test(`the lease of a killed server is free when its callers can no longer use it, with ${clocks}`, async (t) => {
    const servers = createServers();
    const killed = servers.add(aheadMs);
    const envoys = toBusy(servers.add(), killed);
    await run(servers, envoys, 21);
    killed.kill();
    const [one, other] = envoys;
    const { most } = await run(servers, envoys, 15);
    t.true(most <= limit, `${most}`);
    t.is(other.assigned(1), 0);
    await run(servers, envoys, 10);
    t.true(one.assigned(1) >= limit - 2, `${one.assigned(1)}`);
  });
}

test('an Envoy of a killed server receives its part again from another server', async (t) => {
  const servers = createServers();
  const killed = servers.add();
  const retained = servers.add();
  const envoys = toBusy(retained, killed);
  await run(servers, envoys, 21);
  killed.kill();
  envoys[1].moveTo(retained);
  const { most } = await run(servers, envoys, 26);
  t.true(most <= limit, `${most}`);
  for (const envoy of envoys) t.true(Math.abs(envoy.assigned(1) - limit / 2) <= 2);
});

test('the lease of a stopped server is free two slots of five seconds later', async (t) => {
  const servers = createServers();
  const stopped = servers.add();
  const retained = servers.add();
  const [one, other] = toBusy(retained, stopped);
  await run(servers, [one, other], 21);
  stopped.service.close();
  stopped.kill();
  other.moveTo(retained);
  const { most, last } = await run(servers, [one, other], 12);
  t.true(most <= limit, `${most}`);
  t.true(last >= limit - 2, `${last}`);
});

test('servers divide a limit as before after the store has lost all data', async (t) => {
  const servers = createServers();
  const envoys = [60, always, 10].map((rate) => new QuotaEnvoy(servers.add(), bucket, rate));
  await run(servers, envoys, 21);
  servers.lose();
  await run(servers, envoys, 2);
  // A server that starts then finds that nothing is free.
  envoys.push(new QuotaEnvoy(servers.add(), bucket, 10));
  const { most, last } = await run(servers, envoys, 15);
  t.true(most <= limit, `${most}`);
  t.true(last >= limit - 5, `${last}`);
});

test('servers divide a limit as before after the store was unreachable and has lost all data', async (t) => {
  const servers = createServers();
  const envoys = toBusy(servers.add(), servers.add());
  await run(servers, envoys, 21);
  servers.isAway = true;
  await run(servers, envoys, 4);
  servers.lose();
  servers.isAway = false;
  await run(servers, envoys, 2);
  for (let second = 0; second < 10; second++) {
    const { last } = await run(servers, envoys, 1);
    t.true(last >= limit - 2 && last <= limit, `${last}`);
  }
});

test('a server that starts just when the store has lost all data has too much for two seconds', async (t) => {
  const servers = createServers();
  const envoys = [new QuotaEnvoy(servers.add(), bucket, always)];
  await run(servers, envoys, 21);
  await runEnvoys(servers.worlds, envoys, 0.5);
  servers.lose();
  envoys.push(new QuotaEnvoy(servers.add(), bucket, always));
  const early = await run(servers, envoys, 2);
  t.true(early.most <= 2 * limit, `${early.most}`);
  const late = await run(servers, envoys, 15);
  t.true(late.most <= limit, `${late.most}`);
});

test('servers keep their parts while the store fails, and afterwards', async (t) => {
  const servers = createServers();
  const envoys = toBusy(servers.add(), servers.add());
  await run(servers, envoys, 21);
  servers.isAway = true;
  const away = await run(servers, envoys, 10);
  t.true(away.most <= limit && away.last >= limit - 2, `${away.most} ${away.last}`);
  servers.isAway = false;
  const back = await run(servers, envoys, 10);
  t.true(back.most <= limit && back.last >= limit - 2, `${back.most} ${back.last}`);
});

test('servers together admit no more than a limit per minute allows', async (t) => {
  const servers = createServers(rule('minute', 600));
  const first = servers.add();
  // A window begins 45 s later.
  await run(servers, [], 45);
  const idle = new QuotaEnvoy(first, bucket, 1);
  const busy = new QuotaEnvoy(servers.add(), bucket, 60);
  const rows = [...(await runEnvoys(servers.worlds, [idle, busy], 20))];
  idle.perSecond = 60;
  rows.push(...(await runEnvoys(servers.worlds, [idle, busy], 35)));
  const passed = rows.flat().reduce((sum, row) => sum + row.passed, 0);
  t.true(passed >= 585 && passed <= 602, `${passed}`);
});

test('a limit of less than one request for each server is assigned to one of them', async (t) => {
  const servers = createServers(rule('second', 1));
  const envoys = [always, always, always].map(
    (rate) => new QuotaEnvoy(servers.add(), bucket, rate),
  );
  const { most, last } = await run(servers, envoys, 15);
  t.true(most <= 1 && last > 0.9, `${most} ${last}`);
});

test('the keys of leases are short, however long the bucket is', async (t) => {
  const servers = createServers();
  const envoy = new QuotaEnvoy(servers.add(), { k: 'x' }, 1);
  await run(servers, [envoy], 2);
  t.true(servers.longestKey < 120, `${servers.longestKey}`);
  t.true(envoy.assigned(1) > 0);
});
