// Every callback that can report an error does so once in a running worker and a running control plane: both survive,
// report the problem, and work completely afterwards.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { listenFor } from '../support/listen.ts';
import { startMemcachedServer } from '../support/memcached-server.ts';
import { workerNodeFlags } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { startStatsdReceiver } from '../support/statsd-receiver.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const root = join(import.meta.dirname, '..', '..');
const rounds = 6;

/** A program whose callbacks fail once each between `begin` and `end`, including those of the processes that it
 * forks. */
function injectErrors(folder: string, main: string, flags: readonly string[]) {
  const report = join(folder, `${main.split('/')[0]}.errors`);
  const inject = join(import.meta.dirname, 'every-error', 'inject.ts');
  const armed = `${report}.armed`;
  function turn(): void {
    for (const pid of readFileSync(`${report}.pids`, 'utf8').trim().split('\n')) {
      try {
        process.kill(Number(pid), 'SIGUSR2');
      } catch {
        // The process has ended.
      }
    }
  }
  const lines = () => (existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : []);
  return {
    program: [process.execPath, '--import', inject, ...flags, join(root, main)],
    env: { INJECTED_ERRORS: report },
    lines,
    begin() {
      writeFileSync(armed, '');
      turn();
    },
    async end() {
      rmSync(armed);
      turn();
      await eventually('the last injected error', () => lines().at(-1) === 'end');
    },
  };
}

interface Case {
  readonly name: string;
  /** Where the rules are: for the control plane, and for a worker that reads them itself. */
  start(t: ExecutionContext): Promise<{
    readonly flags: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly change: (requests: number) => void;
    /** Callbacks that fail after another failure, when the operation is retried. */
    readonly last: readonly string[];
    /** The number of processes that decide for the worker, if there are several. */
    readonly processes?: number;
  }>;
}

const cases: readonly Case[] = [
  {
    name: 'Git and Redis, statistics over UDP',
    async start(t) {
      const repository = createGitRepository(t);
      const redis = await startRedisServer(t);
      const change = (requests: number) =>
        void repository.push({ 'd.yaml': ruleText('d', requests) });
      return {
        flags: ['--git', repository.path, '--git-poll', '1s'],
        env: { REDIS_URL: `127.0.0.1:${redis.port}`, STATSD_PROTOCOL: 'udp' },
        change,
        last: ['dgram.connect', 'dgram.send', 'dgram.send throws', 'spawn.stderr'],
      };
    },
  },
  {
    name: 'a directory and memcached, statistics over TCP',
    async start(t) {
      const rules = createRulesFolder(t);
      const memcached = await startMemcachedServer(t);
      return {
        flags: ['--config-dir', rules.path],
        env: {
          BACKEND_TYPE: 'memcache',
          MEMCACHE_HOST_PORT: `127.0.0.1:${memcached.port}`,
          STATSD_PROTOCOL: 'tcp',
        },
        change: (requests) => rules.replace('d.yaml', ruleText('d', requests)),
        last: ['fs.watch', 'FileHandle.appendFile'],
      };
    },
  },
  {
    name: 'several processes that decide',
    async start(t) {
      const rules = createRulesFolder(t);
      const redis = await startRedisServer(t);
      return {
        flags: ['--config-dir', rules.path],
        env: {
          REDIS_URL: `127.0.0.1:${redis.port}`,
          STATSD_PROTOCOL: 'tcp',
          WORKER_PROCESSES: '2',
        },
        change: (requests) => rules.replace('d.yaml', ruleText('d', requests)),
        last: [
          'forked: open channel',
          'child_process.fork throws',
          'fork in',
          'fork, killed in',
          'fork, killed with a connection underway',
          'fork.send',
          'forked: process.send',
          'forked: setTimeout throws',
          'forked: setImmediate throws',
        ],
        processes: 2,
      };
    },
  },
];

for (const { name, start } of cases) {
  test.serial(`every callback fails once, and everything continues: ${name}`, async (t) => {
    t.timeout(400_000);
    const folder = createTemporaryFolder(t);
    const notified: string[] = [];
    const receiver = createServer((request, response) => {
      request.resume().on('end', () => response.end(() => notified.push(request.url ?? '')));
    });
    const receiverPort = await listenFor(t, receiver);
    const statsd = await startStatsdReceiver(t);
    const { flags, env, change, last, processes } = await start(t);
    change(100_000);

    const errorsOfPlane = injectErrors(folder, 'control-plane/main.ts', []);
    const plane = await createControlPlaneProcess(t, {
      program: errorsOfPlane.program,
      env: errorsOfPlane.env,
      flags: [...flags, '--notify-url', `http://127.0.0.1:${receiverPort}/`],
    });
    await plane.start();
    const errorsOfWorker = injectErrors(folder, 'worker/main.ts', workerNodeFlags);
    const recording = join(folder, 'decisions.jsonl');
    const worker = await startWorkerProcess(t, {
      program: errorsOfWorker.program,
      env: {
        ...errorsOfWorker.env,
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
        DISABLE_STATS: 'false',
        USE_STATSD: 'true',
        STATSD_HOST: 'localhost',
        STATSD_PORT: `${statsd.port}`,
        STATS_FLUSH_INTERVAL: '200ms',
        RECORD_DECISIONS: recording,
        RECORD_DECISIONS_RATE: '1',
        ...env,
      },
    });
    let asked = 0;
    const decide = async () => {
      const body = JSON.stringify({
        domain: 'd',
        descriptors: [{ entries: [{ key: 'k', value: `${asked++}` }] }],
      });
      const url = `http://127.0.0.1:${worker.ports.http}/json`;
      const answer = await fetch(url, { method: 'POST', body }).catch(() => undefined);
      await answer?.body?.cancel();
      return answer?.status === 200;
    };
    const becomes = (requests: number) =>
      eventually(
        `a limit of ${requests}`,
        async () => {
          await plane.fetch('/status').catch(() => undefined);
          await decide();
          const page = await worker.page('/rlconfig').catch(() => '');
          return page.includes(`requests_per_unit=${requests},`);
        },
        90_000,
      );
    const allServe = async () => {
      if (processes === undefined) return;
      await eventually('all processes serve', async () =>
        (await worker.page('/status')).includes(`processes: ${processes} of ${processes} serve`),
      );
    };
    await becomes(100_000);
    // During the worker's start, a process that cannot start ends the worker on purpose.
    await allServe();

    errorsOfPlane.begin();
    errorsOfWorker.begin();
    for (let round = 1; round <= rounds; round++) {
      change(100_000 + round);
      await becomes(100_000 + round);
    }
    const failed = () => [...errorsOfPlane.lines(), ...errorsOfWorker.lines()].join('\n');
    await eventually(
      'the last of those that follow each other',
      async () => {
        await decide();
        return last.every((each) => failed().includes(each));
      },
      90_000,
    );
    await errorsOfPlane.end();
    await errorsOfWorker.end();

    // Everything works again.
    change(200_000);
    await becomes(200_000);
    await eventually('ten decisions', async () => {
      for (let left = 10; left > 0; left--) if (!(await decide())) return false;
      return true;
    });
    const count = (label: string) => statsd.totals.get(label) ?? 0;
    const before = count('ratelimit.service.rate_limit.d.k.total_hits|c');
    await eventually('statistics', async () => {
      await decide();
      return count('ratelimit.service.rate_limit.d.k.total_hits|c') > before;
    });
    const sentCount = notified.length;
    change(300_000);
    await becomes(300_000);
    await eventually('a notification', () => notified.length > sentCount);
    const recorded = () => readFileSync(recording, 'utf8').length;
    const recordedBefore = recorded();
    await eventually('a record', async () => (await decide()) && recorded() > recordedBefore);
    await eventually('the fleet', async () => {
      const { body } = await plane.fetch('/status');
      return body.verdict === 'in_force' && body.workers.inForce === 1;
    });
    for (const errors of [errorsOfPlane, errorsOfWorker]) {
      const lines = errors.lines().filter((line) => line !== 'end');
      t.log(`${lines.length} errors:\n${lines.sort().join('\n')}`);
      t.true(lines.length >= 10);
    }
    for (const output of [worker.output(), plane.output()])
      t.notRegex(output, /Unexpected error|defect|unhandled/i);
    // A deciding process ends only after an exception outside of our callbacks.
    for (const [line] of worker.output().matchAll(/Process \d+ .* failed: .*/g))
      t.true(!line.includes('\\n    at ') || line.includes('throws fails for a test'), line);
    await eventually('what was wrong is logged, and that it is over', async () => {
      await decide();
      const logged = [/Statistics do not reach/, /Statistics reach .* again/, /recorded .* again/];
      return logged.every((each) => each.test(worker.output()));
    });
    await allServe();
    worker.signal('SIGTERM');
    t.is(await worker.waitForEnd(30_000), 0);
    t.is(await plane.end('SIGTERM'), 0);
  });
}
