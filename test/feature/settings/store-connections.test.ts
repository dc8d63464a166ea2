// Tests settings of connections that both key-value stores share, from the environment to the server.
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { launchWorker, startWorker } from '../../support/worker-in-process.ts';

const rules = `
domain: d
descriptors:
  - {key: main, rate_limit: {unit: year, requests_per_unit: 1000}}
  - {key: second, rate_limit: {unit: second, requests_per_unit: 1000}}
`;

const tlsNames = [
  'KVSTORE_TLS',
  'KVSTORE_TLS_CACERT',
  'KVSTORE_TLS_CLIENT_CERT',
  'KVSTORE_TLS_CLIENT_KEY',
  'KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION',
] as const;

/** The server's certificate is for another name, and it requires a client certificate. */
async function startTlsServer(t: ExecutionContext) {
  const { path: folder } = createRulesFolder(t, {
    'ca.pem': caCertificate,
    'server.pem': misnamedCertificate.cert,
    'server.key': misnamedCertificate.key,
    'client.pem': clientCertificate.cert,
    'client.key': clientCertificate.key,
  });
  const port = await freePort();
  const caFile = join(folder, 'ca.pem');
  const redis = await startRedisServer(t, {
    args: [
      ...['--tls-port', String(port), '--tls-ca-cert-file', caFile],
      ...['--tls-cert-file', join(folder, 'server.pem')],
      ...['--tls-key-file', join(folder, 'server.key')],
    ],
  });
  const env: Record<(typeof tlsNames)[number], string> = {
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: caFile,
    KVSTORE_TLS_CLIENT_CERT: join(folder, 'client.pem'),
    KVSTORE_TLS_CLIENT_KEY: join(folder, 'client.key'),
    KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true',
  };
  return { redis, url: `127.0.0.1:${port}`, env };
}

test.serial('with all TLS settings such a store counts', async (t) => {
  const { redis, url, env } = await startTlsServer(t);
  const worker = await startWorker(t, { rules, env: { KVSTORE_URL: url, ...env } });
  t.is((await worker.decide('main')).status, 200);
  t.is(await redis.command('DBSIZE'), 1);
  await eventually('the expiry of its certificate is reported', async () =>
    /^client certificate for the store: valid until 2126-/m.test(await worker.page('/status')),
  );
});

for (const name of tlsNames) {
  test.serial(`${name}: without it that store cannot be reached over TLS`, async (t) => {
    const { url, env } = await startTlsServer(t);
    const { [name]: _left, ...others } = env;
    const { log } = await launchWorker(t, { rules, env: { KVSTORE_URL: url, ...others } });
    await eventually('the failure is logged', () =>
      log.lines.some((line) => line.startsWith(`warning key-value store ${url}: `)),
    );
    t.false(log.lines.some((line) => line.includes('Listening for HTTP')));
  });
}

test.serial(
  'KVSTORE_PERSECOND_TLS: the second store uses TLS, with the files of both',
  async (t) => {
    const { redis, url, env } = await startTlsServer(t);
    const { KVSTORE_TLS: _ofTheMainStore, ...files } = env;
    const second = { KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: url };
    const worker = await startWorker(t, {
      rules,
      env: { KVSTORE_URL: redis.url, ...second, KVSTORE_PERSECOND_TLS: 'true', ...files },
    });
    t.is((await worker.decide('second')).status, 200);
    t.is((await worker.decide('main')).status, 200);
  },
);

test.serial(
  'KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR: a connection to a replica is closed, of either store',
  async (t) => {
    const redis = await startRedisServer(t);
    const worker = await startWorker(t, {
      rules,
      env: {
        KVSTORE_URL: redis.url,
        KVSTORE_PERSECOND: 'true',
        KVSTORE_PERSECOND_URL: redis.url,
        KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR: 'true',
      },
    });
    await redis.command('REPLICAOF', '127.0.0.1', 1);
    for (const [key, pool] of [
      ['main', 'redis_pool'],
      ['second', 'redis_per_second_pool'],
    ] as const) {
      t.is((await worker.decide(key)).status, 400);
      await eventually('the connection is closed', async () =>
        (await worker.page('/stats')).includes(`ratelimit.${pool}.cx_local_close: 1\n`),
      );
    }
  },
);

test.serial('no wait of the start is longer than the maximum', async (t) => {
  const worker = await launchWorker(t, {
    clock: createManualClock(),
    env: {
      KVSTORE_URL: `127.0.0.1:${await freePort()}`,
      KVSTORE_STARTUP_INITIAL_INTERVAL: '9s',
      KVSTORE_STARTUP_MAX_INTERVAL: '2s',
    },
  });
  worker.started.catch(() => {});
  await eventually('the wait', () => worker.log.lines.some((line) => /in 2 s/.test(line)));
  t.pass();
});

test.serial(
  'KVSTORE_STARTUP_INITIAL_INTERVAL, KVSTORE_STARTUP_MAX_INTERVAL, KVSTORE_STARTUP_MAX_ELAPSED_TIME: attempts begin, grow and end as set',
  async (t) => {
    const clock = createManualClock();
    const url = `127.0.0.1:${await freePort()}`;
    const worker = await launchWorker(t, {
      clock,
      env: {
        KVSTORE_URL: url,
        KVSTORE_STARTUP_INITIAL_INTERVAL: '3s',
        KVSTORE_STARTUP_MAX_INTERVAL: '10s',
        KVSTORE_STARTUP_MAX_ELAPSED_TIME: '25s',
      },
    });
    const waits = () =>
      worker.log.lines.flatMap((line) => {
        const seconds = /next attempt in (\S+) s/.exec(line)?.[1];
        return seconds === undefined ? [] : [Math.round(Number(seconds) * 1_000)];
      });
    for (let attempt = 0, elapsedMs = 0; elapsedMs < 25_000; attempt++) {
      await eventually('the wait', () => waits().length > attempt);
      const waitMs = waits()[attempt] ?? 0;
      const longestMs = Math.min(10_000, 3_000 * 2 ** attempt);
      t.true(waitMs >= 3_000 && waitMs <= longestMs, `${waitMs} ms, wait ${attempt}`);
      clock.advance(waitMs);
      elapsedMs += waitMs;
    }
    await t.throwsAsync(worker.started, {
      message: new RegExp(`^key-value store ${url} did not answer within 25 s: `),
    });
  },
);
