// Tests Envoys with the quota filter beside Envoys that ask for each request, on one limit, with the clock advanced by
// hand.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import {
  AskingEnvoy,
  createQuotaWorld,
  QuotaEnvoy,
  runEnvoys,
} from '../../test/support/quota-envoy.ts';
import type { CounterStore } from '../counters/store.ts';

const rule = (unit: string, requests: number) =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: ${unit}, requests_per_unit: ${requests}}\n`;
const bucket = { k: 'a' };

/** `servers` servers on one store, each with an Envoy of each kind; no step is at the boundary of two windows. */
function start(yaml: string, servers: number, asking: number, reporting: number) {
  const first = createQuotaWorld(yaml);
  first.clock.advance(10);
  const beside = () => createQuotaWorld(yaml, { beside: first });
  const worlds = servers === 1 ? [first] : Array.from({ length: servers }, beside);
  const reporters = worlds.map((world) => new QuotaEnvoy(world, bucket, reporting / servers));
  const askers = worlds.map((world) => new AskingEnvoy(world, bucket, asking / servers));
  return { worlds, reporters, envoys: [...reporters, ...askers], askers };
}

/** The number of admitted requests in each second. */
async function run({ worlds, envoys }: ReturnType<typeof start>, seconds: number) {
  const rows = await runEnvoys(worlds, envoys, seconds);
  return rows.map((row) => row.reduce((sum, { passed }) => sum + passed, 0));
}

/** Requests per second: of Envoys that ask for each request, and of the quota filter. */
const loads = [
  [200, 60],
  [20, 60],
  [20, 20],
  [100, 100],
  [0, 60],
  [10, 200],
] as const;

const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0);

for (const servers of [1, 2]) {
  for (const phase of [0, 2, 4]) {
    test(`a limit per minute is exceeded by at most a second of the quota filter, with ${servers} servers and reports ${phase} s after the window begins`, async (t) => {
      const limit = 1_200;
      for (const [asking, reporting] of loads.slice(0, phase === 0 ? loads.length : 2)) {
        const all = start(rule('minute', limit), servers, asking, reporting);
        // A window begins 45 s after the start.
        await runEnvoys(all.worlds, [], phase);
        await run(all, 45 - phase);
        for (let window = 0; window < 2; window++) {
          const passed = sum(await run(all, 60));
          // If a report covers two windows, time determines which requests were in which, to within one for each Envoy.
          const most = limit + (asking > 0 ? reporting : 0) + 2 * servers;
          const text = `${asking} and ${reporting} a second: ${passed}`;
          t.true(passed >= limit - 2 * servers && passed <= most, text);
        }
      }
    });
  }

  test(`a limit that others use up is only exceeded by what an Envoy is assigned and has not reported, with ${servers} servers`, async (t) => {
    const limit = 1_200;
    const all = start(rule('minute', limit), servers, 400, 0);
    await runEnvoys(all.worlds, [], 45);
    for (const envoy of all.reporters) envoy.perSecond = 50;
    let passed = sum(await run(all, 1));
    let open = 0;
    while (!all.askers.some(({ wasRefused }) => wasRefused)) {
      open = sum(all.reporters.map((envoy) => envoy.open));
      passed += sum(await run(all, 1));
    }
    const before = passed;
    passed += sum(await run(all, 1));
    t.true(open > 0 && passed <= limit + open, `${passed} of ${limit} and ${open}`);
    t.true(passed - before <= 50 * servers, 'for a second');
    t.is(sum(await run(all, 20)), 0, 'and nothing more');
  });

  test(`a limit per second is exceeded at most by the hits assigned before the quota filter reports, with ${servers} servers`, async (t) => {
    const limit = 100;
    for (const [asking, reporting] of [
      [60, 60],
      [100, 20],
      [20, 100],
      [200, 200],
    ] as const) {
      const all = start(rule('second', limit), servers, asking, reporting);
      const rows = await run(all, 30);
      const text = `${asking} and ${reporting} a second: ${rows.join(' ')}`;
      // A bucket is full at first, and a few requests are admitted before it exists.
      t.true(Math.max(...rows) <= 2.5 * limit + 10, text);
      const settled = rows.slice(12);
      t.true(Math.min(...settled) >= limit * 0.95 && Math.max(...settled) <= limit * 1.05, text);
    }
  });

  test(`an Envoy that admits less than before takes no more of a limit per second, with ${servers} servers`, async (t) => {
    const all = start(rule('second', 100), servers, 100, 60);
    await run(all, 15);
    for (const envoy of all.reporters) envoy.perSecond = 20 / servers;
    const rows = (await run(all, 20)).slice(7);
    t.true(Math.min(...rows) >= 95 && Math.max(...rows) <= 105, rows.join(' '));
  });
}

for (const before of [5, 6, 9]) {
  test(`requests expected of an Envoy while the store failed are not refunded to the detriment of others, ${before} s after the window begins`, async (t) => {
    const limit = 1_200;
    let isAway = false;
    const store = (inner: CounterStore): CounterStore => ({
      ...inner,
      count(request) {
        if (!isAway) inner.count(request);
        else setImmediate(() => request.settle(new AppError('store', 'it is away')));
      },
    });
    const world = createQuotaWorld(rule('minute', limit), { store });
    world.clock.advance(10);
    const reporter = new QuotaEnvoy(world, bucket, 60);
    const asker = new AskingEnvoy(world, bucket, 20);
    const envoys = [reporter, asker];
    await runEnvoys([world], envoys, 45);
    const rows = [...(await runEnvoys([world], envoys, before))];
    isAway = true;
    reporter.perSecond = 0;
    asker.perSecond = 0;
    rows.push(...(await runEnvoys([world], envoys, 4)));
    isAway = false;
    rows.push(...(await runEnvoys([world], envoys, 6)));
    asker.perSecond = 200;
    rows.push(...(await runEnvoys([world], envoys, 20)));
    const passed = sum(rows.flat().map((each) => each.passed));
    t.true(passed >= limit - 2 && passed <= limit + 2, `${passed}`);
  });
}
