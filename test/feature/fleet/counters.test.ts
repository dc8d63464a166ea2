// Tests counters of a request that are read and reset through the control plane, on workers that count in one Redis.
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { createCaller } from '../../support/worker-caller.ts';
import { startWorker } from '../../support/worker-in-process.ts';
import { spawnWorkerProcess } from '../../support/worker-process.ts';

const rulesText = `domain: d
descriptors:
  - {key: k, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: bucket, rate_limit: {unit: year, requests_per_unit: 2, algorithm: token_bucket}}
  - {key: slide, rate_limit: {unit: year, requests_per_unit: 2, algorithm: sliding_window}}
  - {key: leased, rate_limit: {unit: year, requests_per_unit: 300, lease: {share: 20%, for: 10s}}}
  - {key: free, rate_limit: {unlimited: true}}
`;
const [reader, writer] = ['r'.repeat(32), 'w'.repeat(32)];

function environment(url: string, id: string): Record<string, string> {
  return {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: url,
    CONFIG_GRPC_XDS_NODE_ID: id,
    LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
  };
}

async function startControlPlane(t: ExecutionContext) {
  const rules = createRulesFolder(t, { 'd.yaml': rulesText });
  const tokens = createRulesFolder(t, { tokens: `ann read ${reader}\nbob write ${writer}\n` });
  const controlPlane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', rules.path, '--admin-tokens-file', `${tokens.path}/tokens`],
    env: { RATELANE_ADMIN_TOKEN: writer },
  });
  await controlPlane.start();
  const linked = (count: number) =>
    eventually(`${count} workers report`, async () => {
      const { stdout } = await controlPlane.run('status');
      return new RegExp(`\\(${count} workers? reports?\\)`).test(stdout);
    });
  const counters = (action: string, descriptor: string, ...more: string[]) =>
    controlPlane.run('counters', action, '--domain', 'd', '--descriptor', descriptor, ...more);
  const reset = (descriptor: string, ...more: string[]) =>
    counters('reset', descriptor, '--reason', 'a mistake', ...more);
  return { controlPlane, rules, linked, counters, reset };
}

/** Both count in one Redis. */
async function startTwoWorkers(t: ExecutionContext) {
  const redis = await startRedisServer(t);
  const fleet = await startControlPlane(t);
  const store = { BACKEND_TYPE: 'redis', KVSTORE_TYPE: 'SINGLE', KVSTORE_URL: redis.url };
  const workers = await Promise.all(
    ['w-1', 'w-2'].map((id) =>
      startWorker(t, { env: { ...environment(fleet.controlPlane.xdsAddress, id), ...store } }),
    ),
  );
  const callers = await Promise.all(
    workers.map(async ({ started }) => createCaller(t, (await started).grpc.text)),
  );
  await fleet.linked(2);
  return { ...fleet, redis, callers };
}

// Serial: a worker answers within 1.5 s, even while it shares this process with others, but none of those may be
// starting.
test.serial(
  'counters are shown and reset for all workers that count together, including their caches',
  async (t) => {
    const { redis, controlPlane, rules, counters, reset, callers } = await startTwoWorkers(t);
    for (const key of ['k', 'bucket', 'slide']) {
      for (let round = 0; round < 3; round++)
        for (const { decide } of callers) await decide('d', key, 'ada');
      const shown = await counters('get', `${key}=ada`);
      t.is(shown.exitCode, 0, shown.stderr);
      t.regex(
        shown.stdout,
        new RegExp(
          `^USED +LIMIT +WINDOW +RESET IN +WORKER +DESCRIPTOR\n[234] +2 +year +\\d+s +w-[12] and 1 other +\\(${key}=ada\\)\nlimited now by the rule d\\.${key} \\(d\\.yaml:\\d:5\\)\n$`,
        ),
      );
      for (const { decide } of callers) t.is(await decide('d', key, 'ada'), 'OVER_LIMIT');
      const done = await reset(`${key}=ada`);
      t.is(done.exitCode, 0, done.stderr);
      t.regex(done.stdout, /\n0 +2 +year[^\n]+\n$/);
      await eventually('both have forgotten', async () => {
        const answers = [];
        for (const { decide } of callers) answers.push(await decide('d', key, 'ada'));
        await reset(`${key}=ada`);
        return answers.every((answer) => answer === 'OK');
      });
    }
    const unmatched = await counters('get', 'k=nobody');
    t.regex(
      unmatched.stdout,
      /\n0 +2 +year.*\nnot limited now by the rule d\.k \(d\.yaml:3:5\)\n$/,
    );
    rules.write(
      'd.yaml',
      rulesText.replace('{unit: year, requests_per_unit: 2}', '{unit: year, requests_per_unit: 3}'),
    );
    await eventually('the rule has another limit', async () => {
      const { stdout } = await counters('get', 'k=nobody');
      return /\n0 +3 +year.*\nnot limited now by the rule d\.k \(d\.yaml:3:5\), last changed by an unknown author at \S+Z in \w{12}\n$/.test(
        stdout,
      );
    });
    t.deepEqual(await redis.command('KEYS', '*nobody*'), []);
    t.regex(
      controlPlane.output(),
      /audit: reset counters of \(k=ada\) of domain d: a mistake: done.* who=bob/,
    );
    // After new rules, a worker may answer without a confirmation for a moment.
    await eventually('the other worker confirms a reset', async () => {
      const [answer] = JSON.parse((await reset('k=ada', '--json')).stdout).answers;
      return answer.confirmedBy === 'another' && !answer.differs && answer.together === 2;
    });
  },
);

test.serial('missing counters, unknown workers and read-only tokens are reported', async (t) => {
  const { controlPlane, linked, counters, reset } = await startControlPlane(t);
  const early = await counters('get', 'k=ada');
  t.is(early.exitCode, 2);
  t.regex(
    early.stderr,
    /^error: no worker has a link to this control plane \(CONFIG_FLEET_LINK\) \(HTTP 503\)/,
  );
  const env = { ...environment(controlPlane.xdsAddress, 'w-1'), BACKEND_TYPE: 'memory' };
  await startWorker(t, { env });
  await linked(1);
  const wrong = [
    await counters('get', 'nothing=x\u001b[31m'),
    await counters('get', 'free=x'),
    await controlPlane.run('counters', 'get', '--domain', 'e', '--descriptor', 'k=x'),
    await counters('get', 'k=x', '--worker', 'w-11'),
    await counters('reset', 'k=x'),
  ];
  t.deepEqual(
    wrong.map(({ exitCode, stderr }) => [exitCode, stderr]),
    [
      [1, 'error: worker w-1: no rule of domain d matches (nothing=x\\u{1b}[31m)\n'],
      [1, 'error: worker w-1: rule d.free is unlimited, so nothing is counted\n'],
      [1, 'error: worker w-1: there are no rules for domain e\n'],
      [
        2,
        "error: no worker with the node id w-11 has a link to this control plane; did you mean 'w-1'? (HTTP 404)\n",
      ],
      [2, 'error: counters reset needs --reason TEXT\n'],
    ],
  );
  const ask = (path: string, token: string) =>
    controlPlane.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        domain: 'd',
        descriptors: [[{ key: 'k', value: 'ada' }]],
        ...(path === '/resets' && { reason: 'x' }),
      }),
    });
  t.is((await ask('/counters', reader)).status, 200);
  t.is((await ask('/resets', reader)).status, 403);
  t.is((await ask('/resets', 'unknown'.repeat(5))).status, 401);
  t.regex(
    controlPlane.output(),
    /audit: POST \/resets: 403: the token ann can only read.* who=ann/,
  );
  const alone = await reset('k=ada', '--worker', 'w-1');
  t.is(alone.exitCode, 0);
  t.regex(alone.stdout, /\n0 +2 +year.*\nconfirmed only by the worker that reset: w-1\n$/);
});

test.serial('counters are not reset where CONFIG_FLEET_LINK_RESET is false', async (t) => {
  const { controlPlane, linked, counters, reset } = await startControlPlane(t);
  const env = {
    ...environment(controlPlane.xdsAddress, 'w-1'),
    BACKEND_TYPE: 'memory',
    CONFIG_FLEET_LINK_RESET: 'false',
  };
  const worker = await startWorker(t, { env });
  await linked(1);
  await worker.decide('k=ada');
  const refused = await reset('k=ada');
  t.is(refused.exitCode, 1);
  t.is(
    refused.stderr,
    'error: not confirmed: worker w-1: CONFIG_FLEET_LINK_RESET=false: this worker resets no counters (HTTP 409)\n',
  );
  t.regex((await counters('get', 'k=ada')).stdout, /\n1 +2 +year/);
  t.regex(
    controlPlane.output(),
    /audit: reset counters .*: 409: not confirmed: worker w-1: CONFIG_FLEET.* who=bob/,
  );
});

test.serial('several processes report and reset counters like a single one', async (t) => {
  const redis = await startRedisServer(t);
  const { controlPlane, linked, counters, reset } = await startControlPlane(t);
  const worker = await spawnWorkerProcess(t, {
    env: {
      ...environment(controlPlane.xdsAddress, 'w-1'),
      BACKEND_TYPE: 'redis',
      KVSTORE_TYPE: 'SINGLE',
      KVSTORE_URL: redis.url,
      WORKER_PROCESSES: '2',
    },
  });
  await eventually('the ports are open', worker.isReady);
  // Connections are distributed in turn.
  const callers = [1, 2].map(() => createCaller(t, `127.0.0.1:${worker.ports.grpc}`));
  await linked(1);
  for (let round = 0; round < 3; round++)
    for (const { decide } of callers) await decide('d', 'k', 'ada');
  t.regex((await counters('get', 'k=ada')).stdout, /\n[234] +2 +year +\d+s +w-1 +\(k=ada\)\n/);
  await eventually('both have forgotten', async () => {
    await reset('k=ada');
    const answers = [];
    for (const { decide } of callers) answers.push(await decide('d', 'k', 'ada'));
    return answers.every((answer) => answer === 'OK');
  });
  await eventually('top has what both refused', async () =>
    /\(k=ada\)/.test((await controlPlane.run('top')).stdout),
  );
});
