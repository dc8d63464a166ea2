import { credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { hashed } from '../../../test/support/hashed-entries.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import { waitUntil } from '../../../test/support/wait-until.ts';
import type { RateLimitRequest, RateLimitResponse } from '../../decision/message.ts';
import type { Decision, ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import { createHealth, type Health } from '../../health.ts';
import { createDecisionMethod } from './decision-method.ts';
import { createGrpcServer } from './grpc-server.ts';

const protos = loadProtos();

const overLimit: RateLimitResponse = {
  overallCode: 2,
  statuses: [
    {
      code: 2,
      currentLimit: { name: '', requestsPerUnit: 5, unit: 'minute' },
      limitRemaining: 0,
      secondsUntilReset: 9,
    },
  ],
  responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5' }],
  requestHeadersToAdd: [],
  dynamicMetadata: { domain: 'd' },
};

const decideOverLimit: ShouldRateLimit = (decision) => {
  decision.answer({ ok: true, response: overLimit });
};

async function start(
  t: ExecutionContext,
  parts: { shouldRateLimit?: ShouldRateLimit; health?: Health; clock?: Clock } = {},
) {
  const log = createRecordedLog();
  const metrics = createStubMetrics();
  const health = parts.health ?? createHealth({ requireConfig: false });
  const server = createGrpcServer(
    {
      shouldRateLimit: parts.shouldRateLimit ?? decideOverLimit,
      health,
      metrics,
      log,
      clock: parts.clock ?? systemClock,
    },
    { target: { host: '127.0.0.1', port: 0 } },
  );
  const address = await server.start();
  t.teardown(() => server.stop(0));
  return { server, address, log, metrics, health };
}

type Unary = (
  request: object,
  done: (error: ServiceError | null, answer: Record<string, unknown>) => void,
) => { cancel(): void };

/** Promisifies the method: resolves with the answer, or with the error as a value. */
function callUnary(client: object, name: string, request: object) {
  return new Promise<{ error: ServiceError | null; answer: Record<string, unknown> }>((resolve) => {
    const method = (client as Record<string, Unary>)[name];
    if (method === undefined) throw new Error(`no method ${name}`);
    method.call(client, request, (error, answer) => resolve({ error, answer }));
  });
}

function connect(t: ExecutionContext, service: object, port: number) {
  const Client = makeClientConstructor(service as never, 'Client');
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  return client as unknown as object & {
    Watch(request: object): WatchStream;
    ServerReflectionInfo(): ReflectionStream;
  };
}

interface WatchStream extends NodeJS.EventEmitter {
  cancel(): void;
}

interface ReflectionStream extends NodeJS.EventEmitter {
  write(message: object): void;
  end(): void;
}

test('a decision is requested and answered with every field', async (t) => {
  const asked: RateLimitRequest[] = [];
  const { address, log } = await start(t, {
    shouldRateLimit(decision) {
      asked.push(decision.request);
      decideOverLimit(decision);
    },
  });
  t.true(log.lines.includes(`notice Listening for gRPC on '${address.text}'`));
  const client = connect(t, protos.rateLimitService, address.port);
  const { error, answer } = await callUnary(client, 'ShouldRateLimit', {
    domain: 'd',
    descriptors: [
      { entries: [{ key: 'k', value: 'v' }], hitsAddend: { value: 3 }, isNegativeHits: true },
    ],
  });
  t.is(error, null);
  t.deepEqual(asked, [
    {
      domain: 'd',
      descriptors: [
        {
          ...hashed([{ key: 'k', value: 'v' }]),
          limit: undefined,
          hitsAddend: 3,
          isNegativeHits: true,
        },
      ],
      hitsAddend: 0,
    },
  ]);
  t.is(answer['overallCode'], 2);
  t.like(answer['statuses'], {
    0: {
      code: 2,
      currentLimit: { requestsPerUnit: 5, unit: 2 },
      durationUntilReset: { seconds: '9' },
    },
  });
  t.like(answer['responseHeadersToAdd'], { 0: { key: 'RateLimit-Limit', value: '5' } });
});

test('every failure of a decision is UNKNOWN with its message', async (t) => {
  for (const code of ['bad_request', 'not_ready', 'store', 'overloaded', 'internal'] as const) {
    const { address, log } = await start(t, {
      shouldRateLimit(decision) {
        decision.answer({ ok: false, error: new AppError(code, `it is ${code}`) });
      },
    });
    const client = connect(t, protos.rateLimitService, address.port);
    const { error } = await callUnary(client, 'ShouldRateLimit', {});
    t.like(error, { code: status.UNKNOWN, details: `it is ${code}` });
    t.true(log.lines.includes(`debug caught error during call: it is ${code}`));
  }
});

test('a decision that throws is an internal error, and the port continues to serve', async (t) => {
  let calls = 0;
  const { address, log } = await start(t, {
    shouldRateLimit(decision) {
      calls++;
      if (calls === 1) throw new Error('a defect');
      decideOverLimit(decision);
    },
  });
  const client = connect(t, protos.rateLimitService, address.port);
  const { error } = await callUnary(client, 'ShouldRateLimit', {});
  t.like(error, { code: status.INTERNAL, details: 'internal error' });
  t.true(log.lines.includes('error defect in ShouldRateLimit: a defect'));
  t.is((await callUnary(client, 'ShouldRateLimit', {})).error, null);
});

test('an undecodable request is refused in the reference’s wording, and not counted', async (t) => {
  const { address, metrics } = await start(t);
  const raw = {
    ShouldRateLimit: {
      ...protos.rateLimitService.ShouldRateLimit,
      requestSerialize: () => Buffer.from('0a02c328', 'hex'),
    },
  };
  const { error } = await callUnary(connect(t, raw, address.port), 'ShouldRateLimit', {});
  t.is(error?.code, status.INTERNAL);
  t.is(error?.details, 'grpc: error unmarshalling request: string field contains invalid UTF-8');
  t.is(metrics.counter('ratelimit_server.ShouldRateLimit.total_requests').value, 0);
});

test('unary calls are counted by method, with their time in whole milliseconds', async (t) => {
  const { address, metrics } = await start(t);
  const decisions = connect(t, protos.rateLimitService, address.port);
  const health = connect(t, protos.healthService, address.port);
  await callUnary(decisions, 'ShouldRateLimit', {});
  await callUnary(decisions, 'ShouldRateLimit', {});
  await callUnary(health, 'Check', {});
  await callUnary(health, 'Check', { service: 'nobody' });
  await callUnary(health, 'List', {});
  const watch = health.Watch({});
  watch.on('error', () => {});
  await new Promise((resolve) => watch.once('data', resolve));
  watch.cancel();
  t.deepEqual(
    [...metrics.snapshot()].filter(([name]) => name.startsWith('ratelimit_server.')),
    [
      ['ratelimit_server.Check.total_requests', 2],
      ['ratelimit_server.List.total_requests', 1],
      ['ratelimit_server.ShouldRateLimit.total_requests', 2],
    ],
  );
  for (const [name, count] of [
    ['ShouldRateLimit', 2],
    ['Check', 2],
    ['List', 1],
  ] as const) {
    const times = metrics.observed(`ratelimit_server.${name}.response_time`);
    t.is(times.length, count);
    t.true(times.every((ms) => Number.isInteger(ms) && ms >= 0));
  }
});

/** A method whose decisions fail after `tookMs`; returns how each call fails. */
function createFailing(t: ExecutionContext, tookMs: number) {
  const clock = createManualClock();
  const metrics = createStubMetrics();
  const method = createDecisionMethod({
    ...{ metrics, clock, log: createRecordedLog() },
    shouldRateLimit(decision) {
      clock.advance(tookMs);
      decision.answer({ ok: false, error: new AppError('store', 'down') });
    },
  });
  const ask = (timeoutMs?: number) => {
    const failures: [status: number, text: string][] = [];
    method.answer(Buffer.of(), 0, 0, {
      receivedMs: clock.monotonicMs(),
      deadlineMs: timeoutMs && clock.monotonicMs() + timeoutMs,
      ...{ peer: () => '', header: () => undefined, succeed: () => t.fail('it succeeded') },
      fail: (status, text) => failures.push([status, text]),
    });
    return failures;
  };
  return { ask, metrics };
}

test('the time of a call is cut to whole milliseconds, failures included', (t) => {
  const { ask, metrics } = createFailing(t, 7.9);
  t.deepEqual(ask(), [[2, 'down']]);
  t.deepEqual(metrics.observed('ratelimit_server.ShouldRateLimit.response_time'), [7]);
});

test("a decision that fails after its caller's deadline is DEADLINE_EXCEEDED", (t) => {
  const { ask } = createFailing(t, 10);
  t.deepEqual(ask(10), [[4, 'the deadline of the call has passed']]);
  t.deepEqual(ask(11), [[2, 'down']]);
});

test('a caller that disconnects cancels the decision, but not after it was answered', async (t) => {
  const decisions: Decision[] = [];
  const { address } = await start(t, {
    shouldRateLimit(decision) {
      decisions.push(decision);
      if (decision.request.domain === 'quick') decideOverLimit(decision);
    },
  });
  const client = connect(t, protos.rateLimitService, address.port);
  await callUnary(client, 'ShouldRateLimit', { domain: 'quick' });
  const method = (client as unknown as Record<string, Unary>)['ShouldRateLimit'];
  const call = method?.call(client, { domain: 'slow' }, () => {});
  t.true(await waitUntil(() => decisions.length === 2, 60_000));
  call?.cancel();
  t.true(await waitUntil(() => decisions[1]?.cancelled === true, 60_000));
  t.false(decisions[0]?.cancelled);
});

test('decisions are counted, and callers are only expected while one is connected', async (t) => {
  const { server, address } = await start(t);
  t.false(server.turnAway());
  const client = connect(t, protos.rateLimitService, address.port);
  await callUnary(client, 'ShouldRateLimit', {});
  t.true(server.turnAway());
  t.is(server.asked, 1);
});

test('callers of former versions are refused, and the log has the remedy', async (t) => {
  const { address, log } = await start(t);
  for (const service of [
    'envoy.service.ratelimit.v2.RateLimitService',
    'pb.lyft.ratelimit.RateLimitService',
  ]) {
    const path = `/${service}/ShouldRateLimit`;
    const former = { ...protos.rateLimitService.ShouldRateLimit, path };
    const client = connect(t, { ShouldRateLimit: former }, address.port);
    const firstMs = performance.now();
    for (let index = 0; index < 20; index++) {
      const { error } = await callUnary(client, 'ShouldRateLimit', { domain: 'd' });
      t.like(error, { code: status.UNIMPLEMENTED, details: `unknown service ${service}` });
    }
    const isAbout = (line: string) => line.startsWith('warning ') && line.includes(service);
    const warnings = log.lines.filter(isAbout);
    t.regex(warnings[0] ?? '', /transport_api_version: V3/);
    // After the first line, one line per second with the number of calls.
    const seconds = (performance.now() - firstMs) / 1_000;
    t.true(warnings.length <= 1 + seconds, `${warnings.length} warnings in ${seconds} s`);
  }
});

// Proof of migrating.md: The health of the empty service name is that of `ratelimit`
test('health is the same for the service and for the empty name', async (t) => {
  const { address, health } = await start(t);
  const client = connect(t, protos.healthService, address.port);
  for (const [healthy, expected] of [
    [true, 1],
    [false, 2],
  ] as const) {
    health.set('store', healthy);
    for (const service of ['', 'ratelimit']) {
      const { error, answer } = await callUnary(client, 'Check', { service });
      t.is(error, null);
      t.is(answer['status'], expected);
    }
    const { answer } = await callUnary(client, 'List', {});
    t.deepEqual(answer['statuses'], { '': { status: expected }, ratelimit: { status: expected } });
  }
  const { error } = await callUnary(client, 'Check', { service: 'nobody' });
  t.like(error, { code: status.NOT_FOUND, details: 'unknown service' });
});

test('a watch sends the state, each change, and ends when the server stops', async (t) => {
  const { address, health, server } = await start(t);
  const client = connect(t, protos.healthService, address.port);
  const seen: number[] = [];
  let end: ServiceError | undefined;
  const watch = client.Watch({ service: 'ratelimit' });
  watch.on('data', (message: { status: number }) => seen.push(message.status));
  watch.on('error', (error: ServiceError) => {
    end = error;
  });
  t.true(await waitUntil(() => seen.length === 1, 60_000));
  health.set('store', false);
  t.true(await waitUntil(() => seen.length === 2, 60_000));
  health.set('store', true);
  t.true(await waitUntil(() => seen.length === 3, 60_000));
  t.deepEqual(seen, [1, 2, 1]);
  await server.stop(10_000);
  t.true(await waitUntil(() => end !== undefined, 60_000));
  t.is(end?.code, status.UNAVAILABLE);
});

test('a watch of an unknown service reports it as unknown and stays open', async (t) => {
  const { address, health } = await start(t);
  const client = connect(t, protos.healthService, address.port);
  const seen: number[] = [];
  const watch = client.Watch({ service: 'nobody' });
  watch.on('data', (message: { status: number }) => seen.push(message.status));
  watch.on('error', () => {});
  let isEnded = false;
  watch.on('end', () => {
    isEnded = true;
  });
  t.true(await waitUntil(() => seen.length === 1, 60_000));
  health.set('store', false);
  await callUnary(client, 'Check', {});
  t.deepEqual(seen, [3]);
  t.false(isEnded);
  watch.cancel();
});

test('a watcher that leaves is forgotten', async (t) => {
  const health = createHealth({ requireConfig: false });
  let listeners = 0;
  const counted: Health = {
    ...health,
    get healthy() {
      return health.healthy;
    },
    onChange(listener) {
      const stop = health.onChange(listener);
      listeners++;
      return () => {
        listeners--;
        stop();
      };
    },
  };
  const { address } = await start(t, { health: counted });
  const watch = connect(t, protos.healthService, address.port).Watch({});
  watch.on('error', () => {});
  watch.on('data', () => {});
  t.true(await waitUntil(() => listeners === 1, 60_000));
  watch.cancel();
  t.true(await waitUntil(() => listeners === 0, 60_000));
});

// Proof of migrating.md: gRPC reflection and `RateLimitQuotaService` are served
test('reflection lists the services and describes their messages', async (t) => {
  const { address } = await start(t);
  const client = connect(t, protos.reflectionService, address.port);
  const answers: Record<string, unknown>[] = [];
  const stream = client.ServerReflectionInfo();
  stream.on('data', (message: Record<string, unknown>) => answers.push(message));
  const ended = new Promise((resolve) => stream.on('end', resolve));
  stream.write({ listServices: '*' });
  stream.write({ fileContainingSymbol: 'envoy.service.ratelimit.v3.RateLimitService' });
  stream.write({ fileContainingSymbol: 'no.such.Symbol' });
  stream.end();
  await ended;
  const list = answers[0]?.['listServicesResponse'] as { service: { name: string }[] };
  t.deepEqual(list.service.map(({ name }) => name).sort(), [
    'envoy.service.rate_limit_quota.v3.RateLimitQuotaService',
    'envoy.service.ratelimit.v3.RateLimitService',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
  ]);
  const files = answers[1]?.['fileDescriptorResponse'] as { fileDescriptorProto: Buffer[] };
  const described = Buffer.concat(files.fileDescriptorProto).toString('latin1');
  for (const name of [
    'ShouldRateLimit',
    'RateLimitDescriptor',
    'is_negative_hits',
    'UInt64Value',
  ]) {
    t.true(described.includes(name), name);
  }
  t.like(answers[2]?.['errorResponse'], { errorCode: status.NOT_FOUND });
});
