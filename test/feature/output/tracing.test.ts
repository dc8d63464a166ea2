// Tests traces of the real worker, as a collector receives them.
import { credentials, Metadata, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { eventually } from '../../support/eventually.ts';
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from '../../support/otlp-receiver.ts';
import { pluck } from '../../support/pluck.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const RateLimitClient = makeClientConstructor(loadProtos().rateLimitService, 'RateLimitService');
const rules = {
  'd.yaml': `
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 100}}
  - {key: s, rate_limit: {unit: second, requests_per_unit: 0}}
`,
};
const service = 'envoy.service.ratelimit.v3.RateLimitService';
const callerTrace = 'a'.repeat(32);
const callerSpan = 'b'.repeat(16);

function startWorker(
  t: ExecutionContext,
  receiver: OtlpReceiver,
  env: Readonly<Record<string, string>> = {},
) {
  return startWorkerProcess(t, {
    rules,
    env: {
      BACKEND_TYPE: 'memory',
      TRACING_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      ...env,
    },
  });
}

async function ask(
  worker: WorkerProcess,
  options: { headers?: Readonly<Record<string, string>>; domain?: string; keys?: string[] } = {},
): Promise<'answered' | string> {
  const { headers = {}, domain = 'd', keys = ['k'] } = options;
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const client = new RateLimitClient(
    `127.0.0.1:${worker.ports.grpc}`,
    credentials.createInsecure(),
  );
  const request = { domain, descriptors: keys.map((key) => ({ entries: [{ key, value: 'v' }] })) };
  const text = await new Promise<string>((resolve) => {
    client['ShouldRateLimit']?.(
      request,
      metadata,
      { deadline: Date.now() + 60_000 },
      (error: ServiceError | null) => resolve(error === null ? 'answered' : error.details),
    );
  });
  client.close();
  return text;
}

async function receive(receiver: OtlpReceiver, count: number): Promise<readonly ReceivedSpan[]> {
  await eventually(`${count} spans`, () => receiver.spans.length >= count);
  return receiver.spans;
}

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const span = spans.find((each) => each.name === name);
  if (span === undefined) throw new Error(`no ${name} in ${JSON.stringify(spans)}`);
  return span;
}

for (const protocol of ['http', 'grpc'] as const) {
  // Proof of migrating.md: The lengths of `Redis Pipeline Execution` are the counters of its decision, whose
  // round trip others share
  // Proof of migrating.md: `ratelimit.over_limit` of `ShouldRateLimit Execution` names the rules that are over
  test.serial(
    `TRACING_EXPORTER_PROTOCOL=${protocol}: a decision over gRPC is a server span with the decision and the store's call below it, of TRACING_SERVICE_NAME in TRACING_SERVICE_NAMESPACE`,
    async (t) => {
      const redis = await startRedisServer(t);
      const receiver = await startOtlpReceiver(t, protocol);
      const worker = await startWorker(t, receiver, {
        BACKEND_TYPE: 'redis',
        KVSTORE_URL: redis.url,
        TRACING_EXPORTER_PROTOCOL: protocol,
        TRACING_SERVICE_NAME: 'limits',
        TRACING_SERVICE_NAMESPACE: 'shop',
        OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,region=north',
      });
      t.is(await ask(worker, { keys: ['k', 's'] }), 'answered');
      const spans = await receive(receiver, 3);

      const server = named(spans, `${service}/ShouldRateLimit`);
      t.like(server, { kind: 2, parentSpanId: '', status: 0 });
      const { 'network.peer.port': port, ...attributes } = server.attributes;
      t.deepEqual(attributes, {
        'rpc.system.name': 'grpc',
        'rpc.method': `${service}/ShouldRateLimit`,
        'rpc.response.status_code': 'OK',
        'network.peer.address': '127.0.0.1',
      });
      t.true(Number(port) > 0);

      const decision = named(spans, 'ShouldRateLimit Execution');
      t.is(decision.scope, 'ratelimit');
      t.deepEqual(decision.attributes, {
        domain: 'd',
        'request string':
          'domain:"d" descriptors:{entries:{key:"k" value:"v"}} descriptors:{entries:{key:"s" value:"v"}}',
        'ratelimit.over_limit': 'd.s',
      });
      const call = named(spans, 'Redis Pipeline Execution');
      t.is(call.scope, 'redis.fixedCacheImpl');
      t.deepEqual(call.attributes, { 'pipeline length': 2, 'perSecondPipeline length': 0 });
      for (const span of [decision, call]) {
        t.is(span.kind, 1);
        t.is(span.parentSpanId, server.spanId);
        t.is(span.traceId, server.traceId);
      }

      const { resource } = server;
      t.is(resource['service.name'], 'limits');
      t.is(resource['service.namespace'], 'shop');
      t.is(resource['region'], 'north');
      t.regex(
        String(resource['service.instance.id']),
        /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
      );
    },
  );
}

test.serial("a caller's trace is continued, however its headers name it", async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  const worker = await startWorker(t, receiver);
  const [w3c, single, multi, open, split] = ['1', '2', '3', '4', '5'].map((digit) =>
    digit.repeat(32),
  );
  const headers = [
    { traceparent: `00-${w3c}-${callerSpan}-01` },
    { b3: `${single}-${callerSpan}-1` },
    { 'x-b3-traceid': `${multi}`, 'x-b3-spanid': callerSpan, 'x-b3-sampled': '1' },
    { b3: `${single}-${callerSpan}-1`, traceparent: `00-${callerTrace}-${callerSpan}-01` },
    // Without a sampling state, which leaves the decision to the worker.
    { b3: `${open}-${callerSpan}` },
    { 'x-b3-traceid': `${split}`, 'x-b3-spanid': callerSpan },
  ];
  for (const each of headers) t.is(await ask(worker, { headers: each }), 'answered');
  const spans = await receive(receiver, 12);
  const servers = spans.filter(({ kind }) => kind === 2);
  t.deepEqual(pluck(servers, 'traceId'), [w3c, single, multi, callerTrace, open, split]);
  t.deepEqual(new Set(servers.map(({ parentSpanId }) => parentSpanId)), new Set([callerSpan]));
});

test.serial('headers without a trace context begin a new trace', async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  const worker = await startWorker(t, receiver);
  const headers = { traceparent: `00-${'0'.repeat(32)}-x-01`, b3: 'z'.repeat(5_000) };
  t.is(await ask(worker, { headers }), 'answered');
  const spans = await receive(receiver, 2);
  t.is(named(spans, `${service}/ShouldRateLimit`).parentSpanId, '');
});

test.serial(
  'TRACING_SAMPLING_RATE: the rate applies to traces that begin here; a caller has already decided for its own',
  async (t) => {
    const receiver = await startOtlpReceiver(t, 'http');
    const worker = await startWorker(t, receiver, { TRACING_SAMPLING_RATE: '0' });
    t.is(await ask(worker), 'answered');
    t.is(
      await ask(worker, { headers: { traceparent: `00-${callerTrace}-${callerSpan}-00` } }),
      'answered',
    );
    t.is(
      await ask(worker, { headers: { traceparent: `00-${callerTrace}-${callerSpan}-01` } }),
      'answered',
    );
    await receive(receiver, 2);
    await worker.stop();
    t.deepEqual(pluck(receiver.spans, 'traceId'), [callerTrace, callerTrace]);
  },
);

test.serial(
  'OTEL_SEMCONV_STABILITY_OPT_IN: a failed call is marked as such, with its status as a word',
  async (t) => {
    const receiver = await startOtlpReceiver(t, 'http');
    const worker = await startWorker(t, receiver, { OTEL_SEMCONV_STABILITY_OPT_IN: 'rpc/old' });
    t.is(await ask(worker, { domain: '' }), 'rate limit domain must not be empty');
    const spans = await receive(receiver, 2);
    const server = named(spans, `${service}/ShouldRateLimit`);
    t.like(server, { status: 2, statusText: 'rate limit domain must not be empty' });
    t.is(server.attributes['rpc.response.status_code'], 'UNKNOWN');
    t.is(server.attributes['rpc.method'], 'ShouldRateLimit');
    t.is(server.attributes['rpc.service'], service);
    t.false('rpc.grpc.status_code' in server.attributes);
    t.false('rpc.system.name' in server.attributes);
  },
);

test.serial('over /json each span is a separate trace; one is writing the answer', async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  const worker = await startWorker(t, receiver);
  const response = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
    method: 'POST',
    headers: { traceparent: `00-${callerTrace}-${callerSpan}-01` },
    body: '{"domain":"d","descriptors":[{"entries":[{"key":"x","value":"v"}]}]}',
  });
  t.is(response.status, 200);
  const spans = await receive(receiver, 2);
  t.deepEqual(spans.map(({ name }) => name).sort(), [
    'NewJsonHandler Remaining Execution',
    'ShouldRateLimit Execution',
  ]);
  t.is(new Set(spans.map(({ traceId }) => traceId)).size, 2);
  t.true(
    spans.every(({ parentSpanId, traceId }) => parentSpanId === '' && traceId !== callerTrace),
  );
  t.deepEqual(named(spans, 'NewJsonHandler Remaining Execution').attributes, {
    response: 'overall_code:OK statuses:{code:OK limit_remaining:0}',
  });
});

test.serial('recorded spans are sent before the process ends', async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  const worker = await startWorker(t, receiver, { OTEL_BSP_SCHEDULE_DELAY: '60000' });
  t.is(await ask(worker), 'answered');
  t.is(receiver.spans.length, 0);
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(60_000), 0);
  t.is(receiver.spans.length, 2);
});

test.serial("the exporter's own settings take effect, their secrets are not logged", async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  const worker = await startWorker(t, receiver, {
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=open-sesame',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
    OTEL_BSP_MAX_QUEUE_SIZE: 'many',
    LOG_LEVEL: 'debug',
  });
  t.is(await ask(worker), 'answered');
  await receive(receiver, 2);
  t.is(receiver.headers[0]?.['x-api-key'], 'open-sesame');
  t.regex(worker.output(), /tracing: Unknown value \(\.\.\.\) for OTEL_EXPORTER_OTLP_TIMEOUT/);
  t.regex(worker.output(), /tracing: Unknown value \(\.\.\.\) for OTEL_BSP_MAX_QUEUE_SIZE/);
  t.notRegex(worker.output(), /open-sesame/);
});

test.serial(
  "the library's own settings neither write outside of the log nor disable traces silently",
  async (t) => {
    const receiver = await startOtlpReceiver(t, 'http');
    const loud = await startWorker(t, receiver, { OTEL_LOG_LEVEL: 'info', LOG_LEVEL: 'info' });
    t.is(await ask(loud), 'answered');
    await loud.stop();
    t.notRegex(loud.output(), /logger will/);
    t.true(receiver.headers.length > 0);
    const off = await startWorker(t, receiver, { OTEL_SDK_DISABLED: 'true', LOG_LEVEL: 'info' });
    t.is(await ask(off), 'answered');
    t.regex(off.output(), /level=warning msg="OTEL_SDK_DISABLED is true: no traces are recorded/);
  },
);

test.serial('an invalid endpoint is reported without what may be a password in it', async (t) => {
  for (const [protocol, message] of [
    ['http', /tracing: Configuration: Could not parse/],
    ['grpc', /OTLP_TRACES_ENDPOINT is not an address: write one such as http:/],
  ] as const) {
    const receiver = await startOtlpReceiver(t, protocol);
    const worker = await startWorker(t, receiver, {
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '://user:open-sesame@collector',
    });
    t.regex(worker.output(), message);
    t.notRegex(worker.output(), /open-sesame/);
    await worker.stop();
  }
});

test.serial('a receiver that refuses is reported once, and so is its recovery', async (t) => {
  const receiver = await startOtlpReceiver(t, 'http');
  receiver.answerWith(401);
  const worker = await startWorker(t, receiver);
  for (let exports = 1; exports <= 3; exports++) {
    t.is(await ask(worker), 'answered');
    await eventually('another export', () => receiver.headers.length >= exports);
  }
  await eventually('the complaint', () => /Traces do not reach/.test(worker.output()));
  receiver.answerWith(200);
  t.is(await ask(worker), 'answered');
  await eventually('the return', () => /Traces reach their receiver again/.test(worker.output()));
  t.is(worker.output().match(/Traces do not reach their receiver/g)?.length, 1);
});

test.serial(
  'TRACING_ENABLED: without traces their library is not loaded and no connection is opened',
  async (t) => {
    const receiver = await startOtlpReceiver(t, 'http');
    const hooks = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) {
      if (url.includes('@opentelemetry')) process.stderr.write('loaded ' + url + '\\n');
      return next(url, context);
    } });`;
    const watched = {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}`,
      LOG_LEVEL: 'info',
    };
    const off = await startWorker(t, receiver, { ...watched, TRACING_ENABLED: 'false' });
    t.is(await ask(off), 'answered');
    await off.stop();
    t.notRegex(off.output(), /loaded .*@opentelemetry/);
    t.regex(off.output(), /Tracing disabled/);
    t.is(receiver.headers.length, 0);

    const on = await startWorker(t, receiver, { ...watched, TRACING_EXPORTER_PROTOCOL: 'http' });
    t.regex(on.output(), /loaded .*@opentelemetry/);
    t.regex(
      on.output(),
      /TracerProvider initialized with following parameters: protocol: http, serviceName: RateLimit, serviceNamespace: , serviceInstanceId: [\da-f-]{36}, samplingRate: 1\.000000/,
    );
  },
);
