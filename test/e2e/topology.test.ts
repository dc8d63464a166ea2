// A whole fleet under load: a control plane on Git, three workers that have their rules from it over
// TLS, counters in a Redis cluster with replicas, and Envoy in front. It loses a worker, the control
// plane and a master in turn, and counts exactly again after each, asked directly and through Envoy.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { authority, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { type DecisionLoad, startDecisionLoad } from '../support/decision-load.ts';
import { type Envoy, startEnvoy } from '../support/envoy.ts';
import { generousTimes, readEnvoySample } from '../support/envoy-sample.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  createGitRepository,
  type GitRepository,
  gitEnvironment,
} from '../support/git-repository.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisReplicas } from '../support/redis-replicas.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startOfWindow } from '../support/window-start.ts';
import { createWorkerCaller, type WorkerCaller } from '../support/worker-caller.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const domain = 'topology';
const limit = 100;
const token = 'worker-token-0123456789';
/** What the longest stretch within one window may need. */
const stretchMs = 30_000;
const testMs = 400_000;
const loadValues = 30;

// Each server listens for the end of this process, and there are more than Node expects.
process.setMaxListeners(20);

function rules(changedLimit: number): string {
  return `domain: ${domain}
descriptors:
  - key: plain
    rate_limit: {unit: day, requests_per_unit: ${limit}}
  - key: changed
    rate_limit: {unit: day, requests_per_unit: ${changedLimit}}
  - key: load
    rate_limit: {unit: day, requests_per_unit: 1000000}
`;
}

async function createPlane(
  t: ExecutionContext,
  repository: GitRepository,
): Promise<ControlPlaneProcess> {
  const path = (name: string) => join(repository.folder, name);
  writeFileSync(path('tokens'), `fleet xds ${token}\n`);
  writeFileSync(path('ca.pem'), authority);
  writeFileSync(path('cert.pem'), serverCertificate.cert);
  writeFileSync(path('key.pem'), serverCertificate.key);
  return createControlPlaneProcess(t, {
    flags: [
      ...['--git', repository.url, '--git-ref', 'main', '--git-path', 'limits'],
      ...['--git-poll', '1s', '--xds-tokens-file', path('tokens')],
      ...['--xds-tls-cert', path('cert.pem'), '--xds-tls-key', path('key.pem')],
    ],
    env: gitEnvironment as Record<string, string>,
  });
}

async function startWorker(
  t: ExecutionContext,
  id: string,
  plane: ControlPlaneProcess,
  authorityFile: string,
  cluster: RedisCluster,
): Promise<WorkerCaller> {
  const worker = await startWorkerProcess(t, {
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_NODE_ID: id,
      CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: authorityFile,
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `authorization:Bearer ${token}`,
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '200ms',
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '200ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
      KVSTORE_TYPE: 'cluster',
      KVSTORE_URL: cluster.url,
      KVSTORE_POOL_SIZE: '2',
      // A store that a busy machine holds up fails no decision; a dead one refuses at once.
      KVSTORE_TIMEOUT: '15s',
    },
  });
  const caller = createWorkerCaller(worker);
  t.teardown(() => caller.close());
  return caller;
}

/** How many of so many requests, in turn over the workers, got each answer. */
async function askAll(
  callers: readonly WorkerCaller[],
  count: number,
  key: string,
  value: string,
): Promise<Readonly<Record<string, number>>> {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      (callers[index % callers.length] as WorkerCaller).decide(domain, key, value),
    ),
  );
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
}

interface FrontProxy extends Envoy {
  /** How many of so many requests got each status; `value` is that of the key `plain`. */
  askAll(count: number, value: string): Promise<Readonly<Record<string, number>>>;
}

/** As operators are to run it, but that what is not decided is refused, so that it shows. */
async function startProxy(
  t: ExecutionContext,
  callers: readonly WorkerCaller[],
): Promise<FrontProxy> {
  const [port, shopPort] = [await freePort(), await freePort()];
  const workerPorts = callers.map(({ worker }) => worker.ports.grpc);
  const sample = await readEnvoySample({ port, shopPort, workerPorts }, [
    ...generousTimes,
    ['failure_mode_deny: false', 'failure_mode_deny: true'],
    ['domain: shop', `domain: ${domain}`],
    ['descriptor_key: customer', 'descriptor_key: plain'],
  ]);
  const envoy = await startEnvoy(t, sample, port);
  return {
    ...envoy,
    async askAll(count, value) {
      const answers = Array.from({ length: count }, async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/`, {
          headers: { 'x-customer': value },
        });
        await answer.body?.cancel();
        return answer.status;
      });
      const counts: Record<string, number> = {};
      for (const status of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1;
      return counts;
    },
  };
}

/** A value of the key `plain` that this node of the cluster counts. */
async function findValue(node: RedisServer, start: number, name: string): Promise<string> {
  for (let attempt = 0; attempt < 100; attempt++) {
    // Names that differ in a digit may all fall to the other nodes.
    const value = `${name}-${randomUUID()}`;
    // A node refuses a key that another one serves.
    const isServed = await node.command('GET', counterKey(value, start)).then(
      () => true,
      () => false,
    );
    if (isServed) return value;
  }
  throw new Error(`${node.url} serves nothing`);
}

function counterKey(value: string, start: number): string {
  return `${domain}_plain_${value}_${start}`;
}

function loadContinues({ decisions }: DecisionLoad): Promise<void> {
  const seen = decisions.length;
  return eventually('the load goes on', () => decisions.length > seen + loadValues);
}

test.serial(
  'a worker, the control plane and a master are lost in turn under load, and each time 100 of 300 pass, through Envoy too',
  async (t) => {
    t.timeout(testMs);
    const cluster = await startRedisCluster(t, { nodeTimeoutMs: 5_000 });
    const replicas = await startRedisReplicas(t, cluster);
    const repository = createGitRepository(t);
    const first = repository.push({ 'limits/topology.yaml': rules(limit) });
    const plane = await createPlane(t, repository);
    await plane.start();
    const authorityFile = join(repository.folder, 'ca.pem');
    const callers = await Promise.all(
      ['w1', 'w2', 'w3'].map((id) => startWorker(t, id, plane, authorityFile, cluster)),
    );
    /** The newest revision is in force on exactly so many workers. */
    const isInForce = async (revision: string, workers: number) => {
      const { body } = await plane.fetch('/status');
      return (
        body.verdict === 'in_force' &&
        body.inForce.id === revision &&
        body.workers.connected === workers &&
        body.workers.inForce === workers
      );
    };
    await eventually('all workers have the rules', () => isInForce(first, 3));

    const proxy = await startProxy(t, callers);
    await eventually('Envoy has workers', async () => (await proxy.askAll(1, 'probe'))[200] === 1);

    const load = startDecisionLoad(callers, (caller, round) =>
      caller.decide(domain, 'load', `v${round % loadValues}`),
    );
    t.teardown(load.stop);
    await loadContinues(load);
    await startOfWindow('day', stretchMs);
    const exact = { OK: limit, OVER_LIMIT: 2 * limit };
    const exactStatuses = { 200: limit, 429: 2 * limit };
    t.deepEqual(await askAll(callers, 3 * limit, 'plain', 'all'), exact, 'with everything there');
    t.deepEqual(await proxy.askAll(3 * limit, 'all by Envoy'), exactStatuses, 'through Envoy');

    const [lostCaller, ...others] = callers as [WorkerCaller, ...WorkerCaller[]];
    const workerLostMs = performance.now();
    lostCaller.worker.signal('SIGKILL');
    t.is(await lostCaller.worker.waitForEnd(60_000), 'SIGKILL');
    await eventually('the load notices', () =>
      load.decisions.some(({ caller, answer }) => caller === lostCaller && answer !== 'OK'),
    );
    load.callers = others;
    await startOfWindow('day', stretchMs);
    t.deepEqual(await askAll(others, 3 * limit, 'plain', 'two'), exact, 'without a worker');
    t.deepEqual(await proxy.askAll(3 * limit, 'two by Envoy'), exactStatuses, 'one of them gone');
    await eventually('the lost worker is missed', () => isInForce(first, 2));

    t.is(await plane.end('SIGKILL'), 'SIGKILL');
    await eventually('the workers notice', () =>
      others.every(({ worker }) => /Lost the management server/.test(worker.output())),
    );
    await loadContinues(load);
    await startOfWindow('day', stretchMs);
    t.deepEqual(
      await askAll(others, 3 * limit, 'plain', 'alone'),
      exact,
      'without the control plane',
    );
    t.deepEqual(await proxy.askAll(3 * limit, 'alone by Envoy'), exactStatuses, 'on their own');
    t.deepEqual(await askAll(others, 150, 'changed', 'old'), { OK: 100, OVER_LIMIT: 50 });
    await plane.start();
    await eventually('the workers are back', () => isInForce(first, 2));
    const second = repository.push({ 'limits/topology.yaml': rules(50) });
    await eventually('the commit is in force', () => isInForce(second, 2));
    await startOfWindow('day', stretchMs);
    t.deepEqual(await askAll(others, 150, 'changed', 'new'), { OK: 50, OVER_LIMIT: 100 });

    const [lostMaster, ...masters] = cluster.masters as [RedisServer, ...RedisServer[]];
    const [heir] = replicas as [RedisServer, ...RedisServer[]];
    await loadContinues(load);
    const masterLostMs = performance.now();
    await lostMaster.kill();
    await eventually('the failover', async () =>
      String(await heir.command('INFO', 'replication')).includes('role:master'),
    );
    const failedOverMs = performance.now();
    await eventually('each worker decides again for each value', () => {
      const last = load.decisions.slice(-3 * loadValues);
      return last.every(({ answer, askedMs }) => answer === 'OK' && askedMs > failedOverMs);
    });
    const recoveredMs = performance.now();
    for (const node of [heir, ...masters]) {
      const start = await startOfWindow('day', stretchMs);
      const value = await findValue(node, start, 'after');
      t.deepEqual(await askAll(others, 3 * limit, 'plain', value), exact, 'after the failover');
      t.is(await node.command('GET', counterKey(value, start)), String(3 * limit));
      const proxied = await findValue(node, start, 'envoy');
      t.deepEqual(await proxy.askAll(3 * limit, proxied), exactStatuses, 'with the heir');
      t.is(await node.command('GET', counterKey(proxied, start)), String(3 * limit));
    }

    await loadContinues(load);
    await load.stop();
    const failures = load.decisions.filter(({ answer }) => answer !== 'OK');
    const withWorker = failures.filter(
      ({ caller, answeredMs }) => caller === lostCaller && answeredMs >= workerLostMs,
    );
    const withMaster = failures.filter(
      ({ askedMs, answeredMs }) => answeredMs >= masterLostMs && askedMs <= recoveredMs,
    );
    const otherwise = failures.filter(
      (each) => !withWorker.includes(each) && !withMaster.includes(each),
    );
    t.log(
      `${load.decisions.length} calls, ${withWorker.length} failed with the worker, ` +
        `${withMaster.length} with the master; failover ${Math.round(failedOverMs - masterLostMs)} ms, ` +
        `then ${Math.round(recoveredMs - failedOverMs)} ms to decide everywhere`,
    );
    t.deepEqual(
      otherwise.map(({ answer }) => answer),
      [],
    );
    t.true(withMaster.length > 0, 'the master was lost under load');
  },
);
