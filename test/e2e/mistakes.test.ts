// What a person reads when something is wrong: the common mistakes, each against the real worker,
// with the whole text. The text is the interface here, so it is compared to the letter. Mistake 12, a
// management server, is in mistakes-management-server.test.ts.

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { logLines, messages } from '../support/worker-messages.ts';
import { spawnWorkerProcess, startWorkerProcess } from '../support/worker-process.ts';

const memory = { BACKEND_TYPE: 'memory' };
/** Only against one that hangs. */
const endMs = 30_000;
const goodRules = `domain: d
descriptors:
  - key: k
    rate_limit:
      unit: minute
      requests_per_unit: 5
`;

/** Starts a worker that must not start; gives its error messages. */
async function failToStart(t: ExecutionContext, env: Record<string, string>): Promise<string[]> {
  const worker = await spawnWorkerProcess(t, { env, rules: { 'a.yaml': goodRules } });
  t.is(await worker.waitForEnd(endMs), 1, 'the exit code');
  t.false(worker.output().includes('    at '), 'no stack trace');
  return messages(worker, 'error');
}

/** A worker whose only file has this mistake; gives what it says about it. */
async function readBadRules(t: ExecutionContext, text: readonly string[]) {
  const worker = await spawnWorkerProcess(t, {
    env: memory,
    rules: { 'a.yaml': `${text.join('\n')}\n` },
  });
  await eventually('it is said', () => logLines(worker, 'error').length > 0);
  const health = fetch(`http://127.0.0.1:${worker.ports.http}/healthcheck`);
  await t.throwsAsync(health, undefined, 'a worker without rules answers nobody');
  const status = await fetch(`http://127.0.0.1:${worker.ports.debug}/status`);
  const lines = logLines(worker, 'error');
  const [said] = lines;
  const { file, line, column, hint } = said?.fields ?? {};
  const shown = await status.text();
  t.true(shown.includes(`${file}:${line}:${column}: error: `), 'the debug port says the same');
  t.true(shown.includes(`\n    hint: ${hint}`), 'the debug port says the same');
  return lines.map(({ message, fields }) => ({
    message: message
      .replaceAll(join(worker.rulesFolder, 'a.yaml'), '<file>')
      .replaceAll(worker.rulesFolder, '<folder>'),
    fields: { ...fields, file: `${file}`.replace(worker.rulesFolder, '<folder>') },
  }));
}

const file = '<folder>/a.yaml';
/** One line says what is wrong, and what follows from it. */
const lineOf = (problem: string) =>
  `Error loading new configuration: <file>:${problem}; ` +
  'could not load 1 file from <folder> (1 error): ' +
  'there are no rules, and the gRPC and HTTP ports stay closed until this is repaired';

// Proof of differences.md: A first load that fails is no initial configuration: the gRPC and HTTP ports open
// after the first good one (unless `FORCE_START_WITHOUT_INITIAL_CONFIG`)
test.serial('mistake 1: an unknown key', async (t) => {
  t.deepEqual(
    await readBadRules(t, [
      'domain: d',
      'descriptors:',
      '  - key: k',
      '    rate_limt:',
      '      unit: minute',
      '      requests_per_unit: 5',
    ]),
    [
      {
        message: lineOf("4:5: unknown key 'rate_limt'"),
        fields: {
          file,
          line: '4',
          column: '5',
          path: 'descriptors[0].rate_limt',
          rule: 'unknown-key',
          hint: "did you mean 'rate_limit'?",
        },
      },
    ],
  );
});

test.serial('mistake 2: an unknown unit', async (t) => {
  t.deepEqual(
    await readBadRules(t, [
      'domain: d',
      'descriptors:',
      '  - key: k',
      '    rate_limit:',
      '      unit: mintue',
      '      requests_per_unit: 5',
    ]),
    [
      {
        message: lineOf("5:13: invalid rate limit unit 'mintue'"),
        fields: {
          file,
          line: '5',
          column: '13',
          path: 'descriptors[0].rate_limit.unit',
          rule: 'invalid-unit',
          hint: "did you mean 'minute'? allowed are second, minute, hour, day, week, month and year",
        },
      },
    ],
  );
});

test.serial('mistake 3: YAML that is none', async (t) => {
  t.deepEqual(
    await readBadRules(t, [
      'domain: d',
      'descriptors:',
      '  - key: k',
      '   rate_limit:',
      '      unit: minute',
    ]),
    [
      {
        message: lineOf('4:4: not valid YAML: sequence item without - indicator'),
        fields: {
          file,
          line: '4',
          column: '4',
          rule: 'yaml-syntax',
          hint: "'rate_limit' at 4:4 begins at the wrong column: move it to column 5, below 'key' at 3:5",
        },
      },
    ],
  );
});

test.serial('mistake 4: a descriptor twice', async (t) => {
  t.deepEqual(
    await readBadRules(t, [
      'domain: d',
      'descriptors:',
      '  - key: k',
      '    value: v',
      '    rate_limit: {unit: minute, requests_per_unit: 5}',
      '  - key: k',
      '    value: v',
      '    rate_limit: {unit: hour, requests_per_unit: 5}',
    ]),
    [
      {
        message: lineOf("6:5: duplicate descriptor composite key 'd.k_v'"),
        fields: {
          file,
          line: '6',
          column: '5',
          path: 'descriptors[1]',
          rule: 'duplicate-descriptor',
          hint: 'the first one is at 3:5; keep one item, with rate_limits: [{unit: minute, requests_per_unit: 5}, {unit: hour, requests_per_unit: 5}]',
        },
      },
    ],
  );
});

test.serial('mistake 5: no domain', async (t) => {
  t.deepEqual(
    await readBadRules(t, [
      'descriptors:',
      '  - key: k',
      '    rate_limit: {unit: minute, requests_per_unit: 5}',
    ]),
    [
      {
        message: lineOf('1:1: config file cannot have empty domain'),
        fields: {
          file,
          line: '1',
          column: '1',
          path: 'domain',
          rule: 'empty-domain',
          hint: "name the domain: 'domain: <name>'",
        },
      },
    ],
  );
});

for (const [listener, setting, host] of [
  ['HTTP', 'PORT', 'HOST'],
  ['gRPC', 'GRPC_PORT', 'GRPC_HOST'],
  ['debug', 'DEBUG_PORT', 'DEBUG_HOST'],
] as const) {
  // Proof of differences.md: A port in use ends the start
  test.serial(`mistake 6: the ${listener} port is in use`, async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    t.teardown(() => other.close());
    const { port } = other.address() as AddressInfo;
    t.deepEqual(await failToStart(t, { ...memory, [setting]: String(port) }), [
      `cannot listen for ${listener} on 127.0.0.1:${port}: the port is in use; ` +
        `set ${setting} (and ${host}) to another`,
    ]);
  });
}

// Proof of differences.md: The debug port opens first and says what is awaited
test.serial('mistake 7: no store at start', async (t) => {
  const port = await freePort();
  const worker = await spawnWorkerProcess(t, {
    env: { KVSTORE_URL: `127.0.0.1:${port}` },
    rules: { 'a.yaml': goodRules },
  });
  await eventually('it is said', () => worker.output().includes('key-value store'));
  t.is(
    messages(worker, 'warning').find((text) => text.startsWith('key-value store')),
    `key-value store 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}; ` +
      'next attempt in 1 s (KVSTORE_URL says where it is)',
  );
  t.regex(
    await worker.page('/status'),
    /^waiting for: the counter store/m,
    'the debug port answers',
  );
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(endMs), 0, 'it can be stopped while it waits');
});

test.serial('mistake 8: the store dies later', async (t) => {
  const redis = await startRedisServer(t);
  const worker = await startWorkerProcess(t, {
    env: {
      KVSTORE_URL: redis.url,
      KVSTORE_TIMEOUT: '5s',
      KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    },
    rules: { 'a.yaml': goodRules },
  });
  const ask = () =>
    fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
      method: 'POST',
      body: '{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}',
    });
  const isHealthy = async () =>
    (await fetch(`http://127.0.0.1:${worker.ports.http}/healthcheck`)).ok;
  t.is((await ask()).status, 200);
  await redis.kill();
  await eventually('unhealthy', async () => !(await isHealthy()));
  const startedMs = performance.now();
  for (let index = 0; index < 20; index++) t.is((await ask()).status, 400);
  t.true(performance.now() - startedMs < 20 * 600, 'every call is bounded');
  const [lost] = messages(worker, 'error');
  t.regex(
    lost ?? '',
    new RegExp(
      `^key-value store ${redis.url}: .+; trying again until it answers, decisions follow KVSTORE_FAILURE_MODE=error$`,
    ),
  );
  t.true(
    messages(worker, 'error').some((text) =>
      text.startsWith(`a decision failed: key-value store ${redis.url}: `),
    ),
  );
  t.true(messages(worker, 'error').length <= 5, 'no storm');
  await redis.restart();
  await eventually('healthy again', isHealthy);
  t.is((await ask()).status, 200);
  t.true(
    messages(worker, 'info').some((text) =>
      text.startsWith(`key-value store ${redis.url}: answers again after `),
    ),
  );
});

test.serial('mistake 9: a misspelled setting', async (t) => {
  const worker = await startWorkerProcess(t, {
    env: { ...memory, LOCAL_CACHE_SIZE: '5', KVSTORE_TIMOUT: '1s' },
    rules: { 'a.yaml': goodRules },
  });
  t.deepEqual(messages(worker, 'warning').slice(0, 2), [
    'LOCAL_CACHE_SIZE is not a setting and is ignored: did you mean LOCAL_CACHE_SIZE_IN_BYTES?',
    'KVSTORE_TIMOUT is not a setting and is ignored: did you mean KVSTORE_TIMEOUT?',
  ]);
});

// Proof of differences.md: Settings out of range, contradicting or misspelled are told, all at once
test.serial('mistake 10: a duration without its unit, told together with all others', async (t) => {
  t.deepEqual(
    await failToStart(t, { ...memory, STATS_FLUSH_INTERVAL: '5', KVSTORE_TIMEOUT: 'fast' }),
    [
      'KVSTORE_TIMEOUT="fast": not a duration; write a duration from 1ms to 480h such as 10s',
      'STATS_FLUSH_INTERVAL="5": the unit is missing (one of ns, us, ms, s, m, h); ' +
        'write a duration from 1ms to 480h such as 10s',
      'Not started: 2 settings are wrong; npm run -s worker -- --help lists all of them',
    ],
  );
});

test.serial('mistake 11: a TLS file that is not there', async (t) => {
  t.deepEqual(
    await failToStart(t, {
      ...memory,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: '/nowhere/server.pem',
      GRPC_SERVER_TLS_KEY: '/nowhere/server.key',
    }),
    [
      ...[
        ['GRPC_SERVER_TLS_CERT', '/nowhere/server.pem'],
        ['GRPC_SERVER_TLS_KEY', '/nowhere/server.key'],
      ].map(
        ([setting, path]) =>
          `${setting}="${path}": the file cannot be read ` +
          `(ENOENT: no such file or directory, open '${path}'); ` +
          'name a PEM file that this process may read',
      ),
      'Not started: 2 settings are wrong; npm run -s worker -- --help lists all of them',
    ],
  );
});

test.serial('a bad change keeps the rules in force, and says so', async (t) => {
  const worker = await startWorkerProcess(t, { env: memory, rules: { 'a.yaml': goodRules } });
  const file = join(worker.rulesFolder, 'a.yaml');
  await writeFile(file, goodRules.replace('minute', 'mintue'));
  await eventually('an error', () => messages(worker, 'error').length > 0);
  t.deepEqual(messages(worker, 'error'), [
    `Error loading new configuration: ${file}:5:13: invalid rate limit unit 'mintue'; ` +
      `could not load 1 file from ${worker.rulesFolder} (1 error): ` +
      'the rules loaded before stay in force',
  ]);
  t.is(
    await worker.page('/rlconfig'),
    'd.k: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false\n',
  );
});

// Proof of differences.md: A store must be named; `BACKEND_TYPE=memory` counts in process
test.serial('no store named at all: both ways out are told', async (t) => {
  const [text] = await failToStart(t, {});
  t.regex(text ?? '', /KVSTORE_URL/);
  t.regex(text ?? '', /REDIS_URL/);
  t.regex(text ?? '', /BACKEND_TYPE=memory/);
});
