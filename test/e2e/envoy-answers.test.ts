// Tests the effect of a worker's answer behind Envoy: statuses and headers for the caller, headers for the protected
// service, hits that Envoy counts, limits that Envoy sends, and the behaviour without an answer.
import test from 'ava';
import { type Echo, startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import {
  http2Fields,
  type JsonObject,
  type RouteOptions,
  toCluster,
  toEnvoyConfig,
  toExtension,
  toListener,
} from '../support/envoy-config.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ownedByFile } from '../support/owner.ts';
import { pluck } from '../support/pluck.ts';
import { startOfWindow } from '../support/window-start.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const rules = `domain: envoy
descriptors:
  - {key: three, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: ten, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: watched, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
`;
const daySeconds = 86_400;
/** How long the requests of one test may take. */
const stretchMs = 30_000;

/** Routes whose descriptor has the header `x-who` as its value. */
function toRoute(key: string, path = key, limit: JsonObject = {}): RouteOptions {
  return { path: `/${path}`, rateLimits: [toLimit(key, limit)] };
}

/** A route with its limit in the filter instead of the router: Envoy reads hits only there. */
function toFilterRoute(key: string, path: string, limit: JsonObject): RouteOptions {
  const perRoute = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute',
    rate_limits: [toLimit(key, limit)],
  };
  return {
    path: `/${path}`,
    rateLimits: [],
    fields: { typed_per_filter_config: { 'envoy.filters.http.ratelimit': perRoute } },
  };
}

function toLimit(key: string, limit: JsonObject): JsonObject {
  return {
    actions: [{ request_headers: { header_name: 'x-who', descriptor_key: key } }],
    ...limit,
  };
}

const routes: readonly RouteOptions[] = [
  toRoute('three'),
  toRoute('watched'),
  toFilterRoute('ten', 'ten-by-four', { hits_addend: { number: 4 } }),
  toFilterRoute('ten', 'ten-by-header', { hits_addend: { format: '%REQ(x-cost)%' } }),
  toFilterRoute('ten', 'ten-back', { hits_addend: { number: 5, is_negative_hits: true } }),
  toFilterRoute('ten', 'ten-later', {
    apply_on_stream_done: true,
    hits_addend: { format: '%RESPONSE_CODE%' },
  }),
  toRoute('three', 'override', {
    limit: { dynamic_metadata: { metadata_key: { key: 'tests', path: [{ key: 'limit' }] } } },
  }),
  {
    ...toRoute('ten', 'told'),
    fields: {
      response_headers_to_add: [
        {
          header: {
            key: 'x-asked',
            value: '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:descriptors)%',
          },
        },
      ],
    },
  },
  toRoute('ten'),
];

const filters = [
  toExtension('envoy.filters.http.set_metadata', 'extensions.filters.http.set_metadata.v3.Config', {
    metadata: [
      { metadata_namespace: 'tests', value: { limit: { requests_per_unit: 1, unit: 'HOUR' } } },
    ],
  }),
];

/** Hits of the whole request, as configured before routes could set them. */
const costFilter = toExtension(
  'envoy.filters.http.set_filter_state',
  'extensions.filters.http.set_filter_state.v3.Config',
  {
    on_request_headers: [
      {
        object_key: 'envoy.ratelimit.hits_addend',
        format_string: { text_format_source: { inline_string: '%REQ(x-cost)%' } },
        skip_if_empty: true,
      },
    ],
  },
);

/** By name of the listener: the fields of the rate limit filter, and the filters before it. */
const listeners = {
  plain: [
    { enable_x_ratelimit_headers: 'DRAFT_VERSION_03', enable_retry_after_header: true },
    filters,
  ],
  renamed: [
    {
      rate_limited_status: { code: 503 },
      response_headers_to_add: [{ header: { key: 'x-reason', value: 'too many' } }],
    },
    filters,
  ],
  costly: [{}, [costFilter]],
  open: [toGone({ failure_mode_deny: false }), filters],
  closed: [toGone({ failure_mode_deny: true }), filters],
  coded: [toGone({ failure_mode_deny: true, status_on_error: { code: 504 } }), filters],
} satisfies Record<string, [JsonObject, JsonObject[]]>;
type ListenerName = keyof typeof listeners;

/** Calls the worker that will be ended. */
function toGone(fields: JsonObject): JsonObject {
  const grpcService = { envoy_grpc: { cluster_name: 'gone' } };
  return {
    ...fields,
    rate_limit_service: { transport_api_version: 'V3', grpc_service: grpcService },
  };
}

const owner = ownedByFile(test);

function startWorker() {
  return startWorkerProcess(owner, {
    env: {
      BACKEND_TYPE: 'memory',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
      RESPONSE_DYNAMIC_METADATA: 'true',
      LIMIT_REQUEST_HEADERS_ENABLED: 'true',
      LIMIT_REQUEST_RESET_HEADER: 'X-Window-Ends-In',
    },
    rules: { 'envoy.yaml': rules },
  });
}

async function startAll() {
  const upstreamPort = await startEchoServer(owner);
  const worker = await startWorker();
  const gone = await startWorker();
  const ports = {} as Record<ListenerName, number>;
  const names = Object.keys(listeners) as ListenerName[];
  for (const name of names) ports[name] = await freePort();
  await startEnvoy(
    owner,
    toEnvoyConfig(
      names.map((name) => {
        const [rateLimit, before] = listeners[name];
        return toListener({ port: ports[name], rateLimit, routes, filters: before });
      }),
      [
        toCluster('upstream', [upstreamPort]),
        toCluster('workers', [worker.ports.grpc], http2Fields),
        toCluster('gone', [gone.ports.grpc], http2Fields),
      ],
    ),
    ports.plain,
  );
  return { ports, gone };
}

const running = startAll();

async function ask(
  listener: ListenerName,
  path: string,
  who: string,
  headers: Readonly<Record<string, string>> = {},
) {
  const { ports } = await running;
  const answer = await fetch(`http://127.0.0.1:${ports[listener]}/${path}`, {
    headers: { 'x-who': who, ...headers },
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text };
}

async function remaining(who: string): Promise<string | null> {
  return (await ask('plain', 'ten', who)).headers.get('ratelimit-remaining');
}

test.serial("the caller gets the worker's three headers, whether allowed or refused", async (t) => {
  await startOfWindow('day', stretchMs);
  const seen = [];
  for (let round = 0; round < 4; round++) {
    const { status, headers } = await ask('plain', 'three', 'ada');
    seen.push([status, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]);
    const reset = Number(headers.get('ratelimit-reset'));
    t.true(reset > 0 && reset <= daySeconds, `${reset}`);
  }
  t.deepEqual(seen, [
    [200, '3', '2'],
    [200, '3', '1'],
    [200, '3', '0'],
    [429, '3', '0'],
  ]);
});

test.serial("the caller gets Envoy's own headers, derived from the same answer", async (t) => {
  const { headers } = await ask('plain', 'three', 'grace');
  t.is(headers.get('x-ratelimit-limit'), `3, 3;w=${daySeconds}`);
  t.is(headers.get('x-ratelimit-remaining'), '2');
  t.is(headers.get('x-ratelimit-reset'), headers.get('ratelimit-reset'));
  const other = await ask('renamed', 'three', 'grace');
  t.false(other.headers.has('x-ratelimit-limit'), 'where it was not asked to');
});

test.serial('the upstream gets three request headers with the configured names', async (t) => {
  const { text } = await ask('plain', 'three', 'joan');
  const echo = JSON.parse(text) as Echo;
  t.is(echo['ratelimit-limit'], '3');
  t.is(echo['ratelimit-remaining'], '2');
  t.regex(String(echo['x-window-ends-in']), /^\d+$/);
  t.is(echo['ratelimit-reset'], undefined);
});

test.serial("the request's metadata has the descriptors, for logs and filters", async (t) => {
  const { headers } = await ask('plain', 'told', 'ada');
  t.deepEqual(JSON.parse(headers.get('x-asked') ?? ''), [{ entries: ['ten=ada'] }]);
});

test.serial('a refusal is marked as one, and can have its own status', async (t) => {
  await startOfWindow('day', stretchMs);
  for (let round = 0; round < 3; round++) t.is((await ask('renamed', 'three', 'mary')).status, 200);
  const { status, headers } = await ask('renamed', 'three', 'mary');
  t.is(status, 503);
  t.is(headers.get('x-envoy-ratelimited'), 'true');
  t.is(headers.get('x-reason'), 'too many');
  const usual = await ask('plain', 'three', 'mary');
  t.is(usual.status, 429);
  t.is(usual.headers.get('retry-after'), usual.headers.get('ratelimit-reset'));
});

test.serial('a rule in shadow mode refuses no request', async (t) => {
  const statuses = [];
  for (let round = 0; round < 3; round++)
    statuses.push((await ask('plain', 'watched', 'ada')).status);
  t.deepEqual(statuses, [200, 200, 200]);
});

test.serial('a route sets the number of hits of a request', async (t) => {
  const statuses = [];
  for (let round = 0; round < 3; round++)
    statuses.push((await ask('plain', 'ten-by-four', 'constant')).status);
  t.deepEqual(statuses, [200, 200, 429], '4, 8, 12 of 10');
  const dear = await ask('plain', 'ten-by-header', 'dear', { 'x-cost': '9' });
  t.is(dear.headers.get('ratelimit-remaining'), '1');
  const free = await ask('plain', 'ten-by-header', 'dear', { 'x-cost': '0' });
  t.is(free.headers.get('ratelimit-remaining'), '1', 'a peek does not count');
});

test.serial('filter state envoy.ratelimit.hits_addend sets the number of hits', async (t) => {
  const dear = await ask('costly', 'ten', 'state', { 'x-cost': '7' });
  t.is(dear.headers.get('ratelimit-remaining'), '3');
  t.is((await ask('costly', 'ten', 'state', { 'x-cost': '4' })).status, 429);
});

test.serial('a route can refund hits', async (t) => {
  await ask('plain', 'ten-by-header', 'refund', { 'x-cost': '9' });
  t.is((await ask('plain', 'ten-back', 'refund')).status, 200);
  t.is(await remaining('refund'), '5', '9 less 5 and the one that asks');
});

test.serial('hits counted when the answer is known count for the next request', async (t) => {
  const first = await ask('plain', 'ten-later', 'later');
  t.is(first.status, 200, '200 hits come with the end of the answer');
  t.false(first.headers.has('ratelimit-limit'), 'nothing was decided before');
  // Reads the limit without counting.
  const peek = () => ask('plain', 'ten-by-header', 'later', { 'x-cost': '0' });
  await eventually(
    'the hits are counted',
    async () => (await peek()).headers.get('ratelimit-remaining') === '0',
  );
});

test.serial('a limit that Envoy sends replaces that of the rule', async (t) => {
  await startOfWindow('hour', stretchMs);
  const first = await ask('plain', 'override', 'vip');
  t.is(first.status, 200);
  t.is(first.headers.get('ratelimit-limit'), '1');
  t.true(Number(first.headers.get('ratelimit-reset')) <= 3600, 'by the hour');
  t.is((await ask('plain', 'override', 'vip')).status, 429);
});

test.serial('without a worker requests pass or are refused, as configured', async (t) => {
  const { gone } = await running;
  const askAll = () =>
    Promise.all((['open', 'closed', 'coded'] as const).map((name) => ask(name, 'ten', name)));
  t.deepEqual(pluck(await askAll(), 'status'), [200, 200, 200]);
  gone.signal('SIGKILL');
  t.is(await gone.waitForEnd(60_000), 'SIGKILL');
  t.deepEqual(pluck(await askAll(), 'status'), [200, 500, 504]);
});
