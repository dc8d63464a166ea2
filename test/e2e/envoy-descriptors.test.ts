// Every action by which Envoy makes a descriptor of a request, and the rule that it meets: a real
// Envoy, a real worker, each limit one request a year for each value.
import test from 'ava';
import { startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import {
  http2Fields,
  type JsonObject,
  toCluster,
  toEnvoyConfig,
  toExtension,
  toListener,
} from '../support/envoy-config.ts';
import { freePort } from '../support/free-port.ts';
import { ownedByFile } from '../support/owner.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

interface Ask {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface ActionCase {
  readonly title: string;
  /** Of the route, in YAML's order: together they make one descriptor. */
  readonly actions: readonly JsonObject[];
  /** The rule below `descriptors`, which is to let one request pass. */
  readonly rule: string;
  /** Passes once and is refused then. */
  readonly limited: Ask;
  /** Passes each time: another value, or no descriptor. Absent where every request has the same one. */
  readonly other?: Ask;
  readonly fields?: JsonObject;
}

const once = 'rate_limit: {unit: year, requests_per_unit: 1}';
const free = 'rate_limit: {unlimited: true}';
const from = (address: string): Ask => ({ headers: { 'x-forwarded-for': address } });

/** For rules with the value: what has another one is no match, so not limited. */
function exactly(key: string, value: string): string {
  return `- {key: ${key}, value: "${value}", ${once}}`;
}

function each(key: string): string {
  return `- {key: ${key}, ${once}}`;
}

const metadataKey = (name: string): JsonObject => ({ key: 'tests', path: [{ key: name }] });

/** Signed by nobody: Envoy leaves that to its filter for tokens. */
function token(subject: string): string {
  const parts = [{ alg: 'RS256' }, { sub: subject }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  return `${parts.join('.')}.c2lnbmF0dXJl`;
}

const cases: readonly ActionCase[] = [
  {
    title: 'source_cluster: the Envoy itself, by the cluster of its node',
    actions: [{ source_cluster: {} }, { generic_key: { descriptor_value: 'source' } }],
    rule: `- key: source_cluster
  value: edge
  descriptors:
    ${exactly('generic_key', 'source')}`,
    limited: {},
  },
  {
    title: 'destination_cluster: the cluster that the route leads to',
    actions: [{ destination_cluster: {} }, { generic_key: { descriptor_value: 'destination' } }],
    rule: `- key: destination_cluster
  value: upstream
  descriptors:
    ${exactly('generic_key', 'destination')}`,
    limited: {},
  },
  {
    title: 'request_headers: the value of a header; without the header nothing is asked',
    actions: [{ request_headers: { header_name: 'x-tenant', descriptor_key: 'tenant' } }],
    rule: each('tenant'),
    limited: { headers: { 'x-tenant': 'ada' } },
    other: {},
  },
  {
    title: 'request_headers with skip_if_absent: the descriptor is shorter without the header',
    actions: [
      { generic_key: { descriptor_key: 'kind', descriptor_value: 'skip' } },
      {
        request_headers: {
          header_name: 'x-plan',
          descriptor_key: 'plan',
          skip_if_absent: true,
        },
      },
    ],
    rule: `- key: kind
  value: skip
  ${once}
  descriptors:
    - {key: plan, value: gold, ${free}}`,
    limited: {},
    other: { headers: { 'x-plan': 'gold' } },
  },
  {
    title: 'remote_address: the caller, behind trusted proxies as x-forwarded-for has it',
    actions: [{ remote_address: {} }],
    rule: each('remote_address'),
    limited: from('192.0.2.1'),
    other: { ...from('192.0.2.2') },
  },
  {
    title: 'masked_remote_address: a network of callers',
    actions: [{ masked_remote_address: { v4_prefix_mask_len: 24 } }],
    rule: exactly('masked_remote_address', '198.51.100.0/24'),
    limited: from('198.51.100.7'),
    other: from('203.0.113.7'),
  },
  {
    title: 'masked_remote_address: a network of callers over IPv6',
    actions: [{ masked_remote_address: { v6_prefix_mask_len: 48 } }],
    rule: exactly('masked_remote_address', '2001:db8:1::/48'),
    limited: from('2001:db8:1:2::3'),
    other: from('2001:db8:9::3'),
  },
  {
    title: 'remote_address_match: callers of the networks that are listed',
    actions: [
      {
        remote_address_match: {
          descriptor_key: 'network',
          descriptor_value: 'office',
          address_matcher: { ranges: [{ address_prefix: '10.1.0.0', prefix_len: 16 }] },
        },
      },
    ],
    rule: exactly('network', 'office'),
    limited: from('10.1.2.3'),
    other: from('10.2.2.3'),
  },
  {
    title: 'generic_key: a constant, under the key generic_key',
    actions: [{ generic_key: { descriptor_value: 'login' } }],
    rule: exactly('generic_key', 'login'),
    limited: {},
  },
  {
    title: 'generic_key with descriptor_key: a constant under a key of its own',
    actions: [{ generic_key: { descriptor_key: 'page', descriptor_value: 'login' } }],
    rule: exactly('page', 'login'),
    limited: {},
  },
  {
    title: 'header_value_match: requests whose headers match',
    actions: [
      {
        header_value_match: {
          descriptor_value: 'writes',
          headers: [{ name: 'x-verb', string_match: { exact: 'write' } }],
        },
      },
    ],
    rule: exactly('header_match', 'writes'),
    limited: { headers: { 'x-verb': 'write' } },
    other: { headers: { 'x-verb': 'read' } },
  },
  {
    title: 'header_value_match with expect_match false: requests whose headers do not match',
    actions: [
      {
        header_value_match: {
          descriptor_key: 'anonymous',
          descriptor_value: 'true',
          expect_match: false,
          headers: [{ name: 'authorization', present_match: true }],
        },
      },
    ],
    rule: exactly('anonymous', 'true'),
    limited: {},
    other: { headers: { authorization: 'Bearer someone' } },
  },
  {
    title: 'query_parameter_value_match: requests whose query matches',
    actions: [
      {
        query_parameter_value_match: {
          descriptor_value: 'exports',
          query_parameters: [{ name: 'format', string_match: { exact: 'csv' } }],
        },
      },
    ],
    rule: exactly('query_match', 'exports'),
    limited: { query: '?format=csv' },
    other: { query: '?format=html' },
  },
  {
    title: 'query_parameters: the value of a parameter of the query',
    actions: [{ query_parameters: { query_parameter_name: 'city', descriptor_key: 'city' } }],
    rule: `- {key: city, value: "o*o", ${once}}`,
    limited: { query: '?city=oslo' },
    other: { query: '?city=bern' },
  },
  {
    title: 'metadata of the request: what an earlier filter found out',
    actions: [
      {
        metadata: { descriptor_key: 'role', metadata_key: metadataKey('role'), source: 'DYNAMIC' },
      },
    ],
    rule: each('role'),
    limited: { headers: { 'x-role': 'guest' } },
    other: {},
  },
  {
    title: 'metadata of the route: a constant of the route, or else the default value',
    actions: [
      {
        metadata: {
          descriptor_key: 'tier',
          metadata_key: metadataKey('tier'),
          source: 'ROUTE_ENTRY',
        },
      },
      {
        metadata: {
          descriptor_key: 'zone',
          metadata_key: metadataKey('zone'),
          default_value: 'nowhere',
          source: 'ROUTE_ENTRY',
        },
      },
    ],
    fields: { metadata: { filter_metadata: { tests: { tier: 'slow' } } } },
    rule: `- key: tier
  value: slow
  descriptors:
    ${exactly('zone', 'nowhere')}`,
    limited: {},
  },
  {
    title: 'dynamic_metadata: the older name for metadata of the request',
    actions: [{ dynamic_metadata: { descriptor_key: 'group', metadata_key: metadataKey('role') } }],
    rule: each('group'),
    limited: { headers: { 'x-role': 'guest' } },
    other: { headers: { 'x-role': 'admin' } },
  },
  {
    title: 'extension expr: what an expression makes of the request',
    actions: [
      {
        extension: toExtension(
          'envoy.rate_limit_descriptors.expr',
          'extensions.rate_limit_descriptors.expr.v3.Descriptor',
          { descriptor_key: 'agent', text: 'request.headers["x-agent"]' },
        ),
      },
    ],
    rule: each('agent'),
    limited: { headers: { 'x-agent': 'robot' } },
    other: { headers: { 'x-agent': 'person' } },
  },
  {
    title: 'extension jwt_claim: a claim of the token',
    actions: [
      {
        extension: toExtension(
          'envoy.rate_limit_descriptors.jwt_claim',
          'extensions.rate_limit_descriptors.jwt_claim.v3.Descriptor',
          {
            descriptor_key: 'subject',
            header_name: 'authorization',
            value_prefix: 'Bearer ',
            claim_name: 'sub',
          },
        ),
      },
    ],
    rule: each('subject'),
    limited: { headers: { authorization: `Bearer ${token('ada')}` } },
    other: { headers: { authorization: `Bearer ${token('grace')}` } },
  },
  {
    title:
      'extension matching input: a header by way of a matcher, the key is the name of the input',
    actions: [
      {
        extension: toExtension('by_input', 'type.matcher.v3.HttpRequestHeaderMatchInput', {
          header_name: 'x-input',
        }),
      },
    ],
    rule: each('by_input'),
    limited: { headers: { 'x-input': 'one' } },
    other: { headers: { 'x-input': 'two' } },
  },
];

/** Envoy finds the role of a caller in a header, as a filter for authentication would in a token. */
const roleFilter = toExtension(
  'envoy.filters.http.header_to_metadata',
  'extensions.filters.http.header_to_metadata.v3.Config',
  {
    request_rules: [
      {
        header: 'x-role',
        on_header_present: { metadata_namespace: 'tests', key: 'role', type: 'STRING' },
      },
    ],
  },
);

const owner = ownedByFile(test);

/** The port that answers. */
async function startAll(): Promise<number> {
  const upstream = await startEchoServer();
  owner.teardown(upstream.stop);
  const worker = await startWorkerProcess(owner, {
    env: { BACKEND_TYPE: 'memory' },
    rules: {
      'envoy.yaml': `domain: envoy\ndescriptors:\n${indent(cases.map(({ rule }) => rule))}`,
    },
  });
  const port = await freePort();
  const routes = cases.map(({ actions, fields }, index) => ({
    path: `/case-${index}/`,
    rateLimits: [{ actions }],
    ...(fields && { fields }),
  }));
  await startEnvoy(
    owner,
    toEnvoyConfig(
      [toListener({ port, rateLimit: {}, routes, filters: [roleFilter] })],
      [
        toCluster('upstream', [upstream.port]),
        toCluster('workers', [worker.ports.grpc], http2Fields),
      ],
      // For dynamic_metadata, which is still found in configurations.
      { 'envoy.features.enable_all_deprecated_features': true },
    ),
    port,
  );
  return port;
}

function indent(rules: readonly string[]): string {
  return rules.join('\n').replace(/^/gm, '  ');
}

const running = startAll();

for (const [index, { title, limited, other }] of cases.entries()) {
  test.serial(title, async (t) => {
    const port = await running;
    const ask = async ({ query = '', headers = {} }: Ask) => {
      const answer = await fetch(`http://127.0.0.1:${port}/case-${index}/${query}`, { headers });
      await answer.body?.cancel();
      return answer.status;
    };
    t.is(await ask(limited), 200);
    t.is(await ask(limited), 429);
    if (other === undefined) return;
    t.is(await ask(other), 200);
    // The second time it would be refused where the value made no difference.
    if (other.headers === undefined && other.query === undefined) t.is(await ask(other), 200);
  });
}
