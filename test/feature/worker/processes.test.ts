// Tests a worker of several processes from the point of view of its callers, its operator and its supervisor.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { Profile } from 'pprof-format';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { programCommand } from '../../support/programs.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { limitResource, startScriptedAdsServer } from '../../support/scripted-ads-server.ts';
import { standStill } from '../../support/standstill.ts';
import { startLoad } from '../../support/steady-load.ts';
import { readThreads } from '../../support/threads.ts';
import { createWorkerCaller, type WorkerCaller } from '../../support/worker-caller.ts';
import {
  spawnWorkerProcess,
  startWorkerProcess,
  type WorkerProcess,
  type WorkerProcessOptions,
} from '../../support/worker-process.ts';

const rules = {
  'a.yaml': `domain: d
descriptors:
  - {key: k, rate_limit: {unit: year, requests_per_unit: 100}}
  - {key: last, rate_limit: {unit: year, requests_per_unit: 100}}
`,
};

function environment(redis: RedisServer): Record<string, string> {
  return { KVSTORE_URL: redis.url, WORKER_PROCESSES: '2' };
}

/** Waits until all processes serve. */
async function startProcesses(
  t: ExecutionContext,
  options: WorkerProcessOptions,
): Promise<WorkerProcess> {
  const worker = await startWorkerProcess(t, options);
  await allServe(worker);
  return worker;
}

/** Two processes serve, and the killed one is not among them. */
async function allServe(worker: WorkerProcess, killed?: number): Promise<void> {
  const check = async () => {
    const pids = await pidsOf(worker);
    return pids.length === 2 && pids.every((pid) => pid !== killed);
  };
  await eventually('all serve', check, 30_000);
}

async function healthOf({ ports }: WorkerProcess): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${ports.http}/healthcheck`, {
    // A new connection, and so another process, each time.
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(60_000),
  });
  await answer.body?.cancel();
  return answer.status;
}

/** Of the processes that serve, in the order of their numbers. */
async function pidsOf(worker: WorkerProcess): Promise<number[]> {
  const status = await worker.page('/status');
  return [...status.matchAll(/process \d+: pid (\d+), serves/g)].map(([, pid]) => Number(pid));
}

/** Each on its own connection: the processes get them in turn. */
function createCallers(
  t: ExecutionContext,
  worker: WorkerProcess,
  count: number,
  address?: string,
): WorkerCaller[] {
  return Array.from({ length: count }, () => createWorkerCaller(t, worker, address));
}

/** Each caller in turn; `ask` returns key and value. */
function startDecisions(
  callers: readonly WorkerCaller[],
  ask: (index: number) => readonly [key: string, value: string],
) {
  return startLoad(100, async (index) => {
    const caller = callers[index % callers.length];
    return { caller, answer: await caller?.decide('d', ...ask(index)) };
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.serial(
  'beyond the connections of all processes the least used are closed, and none is passed on',
  async (t) => {
    const redis = await startRedisServer(t);
    const worker = await startProcesses(t, {
      rules,
      env: { ...environment(redis), GRPC_MAX_CONNECTIONS: '1' },
    });
    // The start's own connections check the port.
    await eventually('the port has room', async () => {
      const caller = createWorkerCaller(t, worker);
      const isServed = (await caller.decide('d', 'k', 'v')) === 'OK';
      if (!isServed) caller.close();
      return isServed;
    });
    const sockets = Array.from({ length: 6 }, () => {
      const socket = connect(worker.ports.grpc, '127.0.0.1');
      t.teardown(() => socket.destroy());
      return socket.on('error', () => {}).resume();
    });
    // Two processes have room for two of them.
    await eventually(
      'the others are closed',
      () => sockets.filter(({ closed }) => closed).length >= 4,
    );
    await eventually('they are counted', async () => {
      const [, count = '0'] = /cx_refused: (\d+)/.exec(await worker.page('/stats')) ?? [];
      return Number(count) >= 4;
    });
    t.true(worker.output().includes('GRPC_MAX_CONNECTIONS sets the maximum'));
  },
);

test.serial(
  'WORKER_PROCESSES: connections are distributed, hits and statistics are totals, and rules reach all',
  async (t) => {
    const redis = await startRedisServer(t);
    const pullPort = await freePort();
    const worker = await startProcesses(t, {
      env: {
        ...environment(redis),
        DISABLE_STATS: 'false',
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: `127.0.0.1:${pullPort}`,
      },
      rules,
    });
    t.is(worker.output().match(/Listening for (gRPC|HTTP) on/g)?.length, 2, 'logged once');
    const [first, second] = await pidsOf(worker);
    t.true(second !== undefined && first !== undefined && first !== second);

    const callers = createCallers(t, worker, 6);
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, index) => callers[index % 6]?.decide('d', 'k', 'v')),
    );
    t.is(answers.filter((answer) => answer === 'OK').length, 100);
    t.is(answers.filter((answer) => answer === 'OVER_LIMIT').length, 200);

    // Each process reports separately, possibly during its decisions.
    const expected = [
      'ShouldRateLimit.total_requests: 300\n',
      'rate_limit.d.k.total_hits: 300\n',
      'rate_limit.d.k.over_limit: 200\n',
      'rate_limit.d.k.within_limit: 100\n',
      'rate_limit.d.k.near_limit: 20\n',
    ];
    await eventually('all is counted', async () => {
      const stats = await worker.page('/stats');
      return expected.every((line) => stats.includes(line));
    });
    await eventually('the same is pulled', async () => {
      const pulled = await (await fetch(`http://127.0.0.1:${pullPort}/metrics`)).text();
      return (
        /^ratelimit_service_rate_limit_total_hits\{domain="d",key1="k"\} 300$/m.test(pulled) &&
        /^ratelimit_service_response_time_seconds_count\{.*\} 300$/m.test(pulled)
      );
    });

    const load = startDecisions(callers, () => ['last', 'v']);
    t.teardown(load.stop);
    const profileUrl = `http://127.0.0.1:${worker.ports.debug}/debug/pprof/profile?seconds=1&process=`;
    await eventually(
      'a profile of what decides',
      async () => {
        const profile = await fetch(`${profileUrl}2`, { signal: AbortSignal.timeout(60_000) });
        t.is(profile.status, 200);
        const { stringTable } = Profile.decode(gunzipSync(await profile.arrayBuffer()));
        return /worker\/(decision|counters)\//.test(stringTable.strings.join(' '));
      },
      60_000,
    );
    await load.stop();
    const noProcess = await fetch(`${profileUrl}3`);
    t.is(await noProcess.text(), 'process must be a whole number from 0 to 2\n');

    await writeFile(
      join(worker.rulesFolder, 'a.yaml'),
      rules['a.yaml'].replace('requests_per_unit: 100', 'requests_per_unit: 0'),
    );
    await eventually('the rules are in force in each process', async () => {
      const decided = await Promise.all(callers.map((caller) => caller.decide('d', 'k', 'other')));
      return decided.every((answer) => answer === 'OVER_LIMIT');
    });

    let cut = 0;
    for (let count = 0; count < 6; count++) {
      const socket = connect(worker.ports.grpc, '127.0.0.1');
      t.teardown(() => socket.destroy());
      socket.on('error', () => {});
      socket.once('close', () => cut++);
      // Its settings: a process has the connection.
      await once(socket, 'data');
    }
    process.kill(second ?? 0, 'SIGKILL');
    await eventually('its connections are cut', () => cut >= 2);
    t.true(cut <= 4, 'and no others');

    process.kill(worker.pid, 'SIGKILL');
    await eventually('no process outlives the primary', () => !isRunning(first ?? 0));
  },
);

test.serial(
  'a killed process fails only its own calls in flight and is replaced; the store and the stop concern all',
  async (t) => {
    const redis = await startRedisServer(t);
    const worker = await startProcesses(t, {
      env: {
        ...environment(redis),
        KVSTORE_TIMEOUT: '30s',
        KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
      },
      rules,
    });
    const callers = createCallers(t, worker, 8);
    const load = startDecisions(callers, (index) => ['k', String(index)]);
    t.teardown(load.stop);
    const answeredBy = (from: number) =>
      new Set(load.results.slice(from).flatMap((each) => (each.answer === 'OK' ? each.caller : [])))
        .size;
    await eventually('all callers are answered', () => answeredBy(0) === callers.length);
    const [, victim = 0] = await pidsOf(worker);
    process.kill(victim, 'SIGKILL');
    const gone = /Process 2 \(pid \d+\) was ended by SIGKILL; another replaces it/;
    await eventually('the primary logs the end', () => gone.test(worker.output()));
    await allServe(worker, victim);
    const replacedAt = load.results.length;
    await eventually('all callers are answered again', () => answeredBy(replacedAt) === 8);
    const againAt = load.results.length;
    await eventually('the others continue', () => answeredBy(againAt) === 8);
    await load.stop();
    const failures = load.results.filter(({ answer }) => answer !== 'OK');
    t.true(new Set(failures.map(({ caller }) => caller)).size <= 4, 'those of one process at most');
    t.true(load.results.slice(againAt).every(({ answer }) => answer === 'OK'));
    t.regex(
      await worker.page('/status'),
      /process 2: pid \d+, serves .*, replaced 1 time, counters: /,
    );

    await redis.kill();
    await eventually('each process reports the failure', async () => {
      const states = [await healthOf(worker), await healthOf(worker)];
      return states.every((state) => state === 500);
    });
    await redis.restart();
    await eventually('each process is healthy again', async () => {
      const states = [await healthOf(worker), await healthOf(worker)];
      return states.every((state) => state === 200);
    });

    await redis.pause();
    const body = '{"domain":"d","descriptors":[{"entries":[{"key":"last","value":"v"}]}]}';
    const json = fetch(`http://127.0.0.1:${worker.ports.http}/json`, { method: 'POST', body });
    const inFlight = callers.map((caller) => caller.decide('d', 'last', 'v'));
    const pids = await pidsOf(worker);
    await eventually('they are being decided', async () =>
      (await worker.page('/stats')).includes('rate_limit.d.last.total_hits: 9\n'),
    );
    // As a terminal does it: to all at once.
    for (const pid of [worker.pid, ...pids]) process.kill(pid, 'SIGTERM');
    await eventually('it is stopping', async () =>
      (await worker.page('/status')).includes('healthy: false'),
    );
    redis.resume();
    t.deepEqual(new Set(await Promise.all(inFlight)), new Set(['OK']));
    t.is((await json).status, 200);
    t.is(await worker.waitForEnd(60_000), 0, worker.output());
    t.false(pids.some(isRunning));
  },
);

test.serial('a process that hangs keeps no caller once it is ended', async (t) => {
  const redis = await startRedisServer(t);
  const worker = await startProcesses(t, { env: environment(redis), rules });
  const [, victim = 0] = await pidsOf(worker);
  await standStill(victim);
  const sockets = Array.from({ length: 6 }, () => connect(worker.ports.grpc, '127.0.0.1'));
  const isServed = new Set<Socket>();
  const isClosed = new Set<Socket>();
  for (const socket of sockets) {
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    // The settings, which the server sends first.
    socket.once('data', () => isServed.add(socket));
    socket.once('close', () => isClosed.add(socket));
  }
  await eventually('the other process serves all but one', () => isServed.size === 5);
  process.kill(victim, 'SIGKILL');
  await eventually('the last connection receives GOAWAY', () => isClosed.size === 1);
  t.true([...isClosed].every((socket) => !isServed.has(socket)));
  await allServe(worker, victim);
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(60_000), 0);
});

test.serial('an error is logged when the primary cannot open more connections', async (t) => {
  const worker = await startProcesses(t, {
    env: environment(await startRedisServer(t)),
    rules,
    program: ['bash', '-c', 'ulimit -n 60 && exec "$0" "$@"', ...programCommand('worker')],
  });
  const sockets: Socket[] = [];
  const addSocket = () =>
    sockets.push(connect(worker.ports.debug, '127.0.0.1').on('error', () => {}));
  for (let count = 0; count < 60; count++) addSocket();
  await eventually('the limit is logged', () => {
    // In place of a file that the start had open, and has closed since.
    addSocket();
    return /msg="no more files and conn/.test(worker.output());
  });
  for (const socket of sockets) socket.destroy();
  await eventually('the pages come', async () =>
    /open_files_exhausted: [1-9]/.test(await worker.page('/stats').catch(() => '')),
  );
  t.is(worker.ended(), undefined);
});

test.serial('a worker of one process does not start another', async (t) => {
  const worker = await startWorkerProcess(t, { env: { BACKEND_TYPE: 'memory' }, rules });
  t.false((await worker.page('/status')).includes('processes'));
  if (process.platform !== 'linux') return;
  const children = await readThreads(worker.pid, 'children');
  t.is(children.join(''), '');
});

test.serial('a management server sees one node, and its rules reach all processes', async (t) => {
  const redis = await startRedisServer(t);
  const server = await startScriptedAdsServer(t);
  const worker = await spawnWorkerProcess(t, {
    env: {
      ...environment(redis),
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: server.url,
    },
  });
  const stream = await server.stream(0);
  stream.send('1', 'a', [limitResource('shop', 'shop', 0)]);
  t.is((await stream.request(1)).versionInfo, '1');
  await allServe(worker);
  const callers = createCallers(t, worker, 4);
  const decideAll = (domain: string) =>
    Promise.all(callers.map((caller) => caller.decide(domain, 'k', 'v')));
  t.deepEqual(await decideAll('shop'), Array(4).fill('OVER_LIMIT'));

  stream.send('2', 'b', [limitResource('shop', 'shop', 1_000), limitResource('mail', 'mail')]);
  t.is((await stream.request(2)).versionInfo, '1', 'a refusal, of one resource');
  await eventually('the good resource is in force in each process', async () =>
    (await decideAll('shop')).every((answer) => answer === 'OK'),
  );

  const [, victim = 0] = await pidsOf(worker);
  process.kill(victim, 'SIGKILL');
  await allServe(worker, victim);
  const later = createCallers(t, worker, 4);
  t.deepEqual(
    await Promise.all(later.map((caller) => caller.decide('shop', 'k', 'v'))),
    Array(4).fill('OK'),
  );
  t.is(server.streams.length, 1);
  t.is(stream.requests.length, 3);
});

/** Leaves its socket's file behind. */
const deadListener =
  "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";

test.serial(
  'a unix socket is shared, taken over from a dead process, and never from a living one',
  async (t) => {
    const redis = await startRedisServer(t);
    const uds = `${redis.url.replace(/\W/g, '-')}.sock`;
    const path = join(tmpdir(), uds);
    const env = { ...environment(redis), GRPC_UDS: path };
    const dead = spawn(process.execPath, ['-e', deadListener, path]);
    await once(dead, 'exit');
    t.true(existsSync(path));

    const worker = await startProcesses(t, { env, rules });
    const callers = createCallers(t, worker, 4, `unix:${path}`);
    const answers = await Promise.all(
      Array.from({ length: 150 }, (_, index) => callers[index % 4]?.decide('d', 'k', 'v')),
    );
    t.is(answers.filter((answer) => answer === 'OK').length, 100);
    const [, victim = 0] = await pidsOf(worker);
    process.kill(victim, 'SIGKILL');
    await allServe(worker, victim);

    const second = await spawnWorkerProcess(t, { env, rules });
    t.is(await second.waitForEnd(60_000), 1);
    t.regex(second.output(), /the unix socket .*: another process listens there/);
    t.deepEqual(
      new Set(await Promise.all(callers.map((caller) => caller.decide('d', 'k', 'other')))),
      new Set(['OK']),
    );
    worker.signal('SIGTERM');
    t.is(await worker.waitForEnd(60_000), 0);
    t.false(existsSync(path));
  },
);

// Proof of migrating.md: The debug port opens first and shows what is awaited
test.serial('a silent store is logged once, and a signal ends the wait', async (t) => {
  const worker = await spawnWorkerProcess(t, {
    env: {
      KVSTORE_URL: `127.0.0.1:${await freePort()}`,
      KVSTORE_STARTUP_INITIAL_INTERVAL: '60s',
      KVSTORE_STARTUP_MAX_INTERVAL: '60s',
      WORKER_PROCESSES: '3',
    },
    rules,
  });
  await eventually('it is logged', () => /127\.0\.0\.1:\d+.*ECONNREFUSED/.test(worker.output()));
  const status = await worker.page('/status');
  t.regex(status, /^waiting for: the counter store/m);
  t.regex(status, /processes: 0 of 3 serve\n {2}process 1: pid \d+, starts, /);
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(60_000), 0, worker.output());
  t.is(worker.output().match(/ECONNREFUSED/g)?.length, 1, worker.output());
});

// Proof of migrating.md: A port in use ends the start
test.serial('a mistake, such as a port in use, is reported as by one process, once', async (t) => {
  const redis = await startRedisServer(t);
  const ports = { http: await freePort(), grpc: await freePort(), debug: await freePort() };
  const outputs: string[] = [];
  for (const count of ['1', '2']) {
    const worker = await spawnWorkerProcess(t, {
      env: { ...environment(redis), WORKER_PROCESSES: count, GRPC_PORT: String(redis.port) },
      rules,
      ports,
    });
    t.is(await worker.waitForEnd(60_000), 1);
    const text = worker.output().replaceAll(worker.rulesFolder, '(rules)');
    outputs.push(text.replace(/^time="[^"]*" /gm, ''));
  }
  t.regex(
    outputs[0] ?? '',
    /cannot listen for gRPC on 127\.0\.0\.1:\d+: the port is in use; set GRPC_PORT \(and GRPC_HOST\) to another/,
  );
  t.is(outputs[1], outputs[0]);
});
