// Tests the prediction of a change's effect: compares what was recorded with what then really happens, and covers
// everything that can prevent a prediction.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { EffectJson } from '../../../control-plane/server/admin/controllers/effects.ts';
import { toText } from '../../../control-plane/server/fleet/limited-values.ts';
import { systemClock } from '../../../shared/clock.ts';
import { type AdminApiOptions, startAdminApi } from '../../support/admin-api.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const customers = (limit: number) =>
  `domain: d\ndescriptors:\n  - key: customer\n    rate_limit: { unit: year, requests_per_unit: ${limit} }\n`;

/** How many requests each customer makes, in turn. */
const traffic = { ada: 31, bob: 20, erin: 12, finn: 10 };

test('the prediction from recorded traffic is what then happens, for each value', async (t) => {
  const rules = createRulesFolder(t, { 'd.yaml': customers(20) });
  const recordings = createTemporaryFolder(t);
  const flags = ['--config-dir', rules.path, '--recordings', recordings];
  const plane = await createControlPlaneInProcess(t, { flags });
  await plane.start();
  const start = (name: string) =>
    startWorker(t, {
      env: {
        ...{ BACKEND_TYPE: 'memory', CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_NODE_ID: name },
        CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
        ...{ RECORD_DECISIONS: join(recordings, name), RECORD_DECISIONS_RATE: '1' },
      },
    });
  /** Refusals by customer. */
  const serve = async (worker: Awaited<ReturnType<typeof start>>) => {
    const refused: Record<string, number> = {};
    for (let turn = 0; turn < traffic.ada; turn++) {
      for (const [customer, requests] of Object.entries(traffic)) {
        if (turn >= requests) continue;
        const { status } = await worker.decide(`customer=${customer}`);
        refused[customer] = (refused[customer] ?? 0) + (status === 429 ? 1 : 0);
      }
    }
    return refused;
  };
  const first = await start('first');
  t.deepEqual(await serve(first), { ada: 11, bob: 0, erin: 0, finn: 0 });

  const total = Object.values(traffic).reduce((sum, requests) => sum + requests, 0);
  let effect: EffectJson | undefined;
  await eventually('all of it is recorded', async () => {
    const answer = await plane.fetch('/effects', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ domain: 'd', yaml: customers(10) }),
    });
    effect = answer.body.effect;
    return effect?.decisions === total;
  });
  t.like(effect, {
    ...{ basis: 'recorded', newlyLimited: 22, freed: 0, valuesInAll: 3 },
    before: { atLeast: 11, atMost: 11 },
    after: { atLeast: 33, atMost: 33 },
    notes: ['under the rules in force 73 of 73 answers are as recorded'],
  });
  const predicted = Object.fromEntries(
    effect?.values.map(({ entries, after }) => [entries[0]?.value, after.atMost]) ?? [],
  );

  const { body } = await plane.fetch('/domains/d', {
    method: 'PUT',
    headers: { 'content-type': 'application/json', 'if-match': '*' },
    body: JSON.stringify({ yaml: customers(10), message: 'half of it' }),
  });
  const second = await start('second');
  await eventually('it has the change', async () => {
    const { workers } = (await plane.fetch('/workers')).body;
    return workers.some(
      (each: { id: string; revision: string }) =>
        each.id === 'second' && each.revision === body.revision,
    );
  });
  const seen = await serve(second);
  t.log(`predicted ${JSON.stringify(predicted)}, seen ${JSON.stringify(seen)}`);
  t.deepEqual({ finn: 0, ...predicted }, seen);
});

const limited = (customer: string, count: number) => ({
  text: toText({
    domain: 'd',
    rule: 'd.customer',
    entries: [{ key: 'customer', value: customer }],
  }),
  ...{
    atLeast: count,
    atMost: count,
    perSecond: count / 120,
    perSecondBefore: null,
    workers: 1,
  },
});
const minutes = (limit: number) => customers(limit).replace('year', 'minute');
const figures = { atMs: Date.now() + 60_000 };

interface Asked {
  readonly yaml: string;
  readonly domain?: string;
  readonly etag?: string;
  readonly allowRemoval?: boolean;
}

async function start(t: ExecutionContext, options: Partial<AdminApiOptions>) {
  const files = { 'd.yaml': minutes(20) };
  const started = await startAdminApi(t, { files, ...options });
  const ask = ({ domain = 'd', ...asked }: Asked) =>
    started.ask('POST', '/effects', { json: { domain, ...asked } });
  return { ...started, ask };
}

/** A worker that reports, and refuses two customers. */
const seen = {
  fleet: {
    list: () => [{ figures }] as never,
    limited: async () => ({
      values: [limited('ada', 1_036), limited('bob', 5)],
      unlistedAtMost: 2,
    }),
    rules: () => [
      { rule: 'd.customer', hitsPerSecond: 12, overLimitPerSecond: 9, nearLimitPerSecond: 0 },
    ],
  },
};

test('without recordings it is an estimate for the limited values, and is marked as such', async (t) => {
  // How many windows two minutes touch depends on the second of the request.
  const fullMinute = { ...systemClock, wallMs: () => Date.parse('2026-11-24T10:30:00Z') };
  const { ask } = await start(t, { ...seen, clock: fullMinute });
  const { body } = await ask({ yaml: minutes(10) });
  t.like(body, { valid: true, isStale: false, path: 'd.yaml' });
  t.is(body.changes[0].text, '20 per minute -> 10 per minute');
  t.regex(body.patch, /^-.*per_unit: 20 }\n\+.*per_unit: 10 }$/m);
  t.like(body.effect, {
    ...{ basis: 'estimate', decisions: null, newlyLimited: null },
    before: { atLeast: 1_041, atMost: 1_041 },
    notes: [
      'workers are assumed to have the default settings',
      '3/s passed under what changes: which of these it would refuse is not known',
      'values that are not listed were refused 2 times at most, each',
    ],
  });
  const [ada, ...others] = body.effect.values;
  t.like(ada, { rule: 'd.customer', before: { atLeast: 1_036, atMost: 1_036 } });
  t.deepEqual(ada.entries, [{ key: 'customer', value: 'ada' }]);
  // Ten more in one minute, or in each of two.
  t.deepEqual(ada.after, { atLeast: 1_046, atMost: 1_056 });
  t.is(others.length, 1);
});

test('a domain without reports has no figures, and the reason is given', async (t) => {
  const { ask } = await start(t, {});
  const withoutWorkers = (await ask({ yaml: minutes(10) })).body.effect;
  t.like(withoutWorkers, { basis: 'none', before: null, after: null, values: [] });
  t.deepEqual(withoutWorkers.notes, ['no worker reports, so its traffic is not known']);
  const quiet = await start(t, { fleet: { list: seen.fleet.list } });
  t.deepEqual((await quiet.ask({ yaml: minutes(10) })).body.effect.notes, [
    'no request of the last minutes matched what changes',
  ]);
  t.deepEqual((await quiet.ask({ yaml: `# more\n${minutes(20)}` })).body.effect.notes, [
    'nothing changes for requests',
  ]);
});

test('unusable recordings are reported, and an estimate replaces them', async (t) => {
  const folder = createTemporaryFolder(t);
  const notesOf = async (recordings: string) => {
    const { ask } = await start(t, { ...seen, recordings });
    const { basis, notes } = (await ask({ yaml: minutes(10) })).body.effect;
    t.is(basis, 'estimate');
    return notes[0];
  };
  t.regex(
    await notesOf(join(folder, 'nowhere')),
    /^the recordings cannot be read: it does not exist/,
  );
  t.is(await notesOf(folder), 'there is no recording yet');
  writeFileSync(join(folder, 'w-1'), 'nonsense\n');
  t.regex(
    await notesOf(folder),
    /^there is no recorded decision of domain d; line 1 of .*not JSON$/,
  );
});

test('invalid rules, an outdated base, and a missing domain are reported', async (t) => {
  const { ask, rules } = await start(t, seen);
  const bad = (await ask({ yaml: minutes(20).replace('unit: minute', 'unit: minit') })).body;
  t.like(bad, { valid: false, effect: null });
  t.like(bad.problems[0], { file: 'd.yaml', line: 4, message: "invalid rate limit unit 'minit'" });
  const { etag } = (await ask({ yaml: minutes(20) })).body;
  t.is((await ask({ yaml: minutes(10), etag })).body.isStale, false);
  rules.replace('d.yaml', minutes(30));
  await eventually('the change is reported', async () => {
    return (await ask({ yaml: minutes(10), etag })).body.isStale === true;
  });
  t.is((await ask({ domain: 'e', yaml: minutes(10) })).body.detail, 'there is no domain e');
  t.is(
    (await ask({ yaml: minutes(10).replace('domain: d', 'domain: e') })).body.detail,
    'the rules are for domain e, not d',
  );
});

test('read access is enough for a prediction, and what a policy refuses is reported in advance', async (t) => {
  const policy = 'policies:\n  - domains: [d]\n    bounds: [{ unit: minute, most: 15 }]\n';
  const { port } = await start(t, {
    files: { 'd.yaml': minutes(10), 'policy.yaml': policy },
    tokens: 'ann read token-of-ann-0123456789\n',
  });
  const response = await fetch(`http://127.0.0.1:${port}/effects`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer token-of-ann-0123456789',
    },
    body: JSON.stringify({ domain: 'd', yaml: minutes(20) }),
  });
  t.is(response.status, 200);
  const { valid, problems } = JSON.parse(await response.text());
  t.false(valid);
  t.like(problems[0], { severity: 'error', rule: 'policy', file: 'd.yaml', line: 3 });
});
