import test from 'ava';
import { pluck } from '../../test/support/pluck.ts';
import { backoffDelayMs } from '../backoff.ts';
import { parseWorkerSettings } from '../settings.ts';
import { toXdsSourceOptions } from './xds-source-options.ts';

function optionsOf(environment: Record<string, string> = {}) {
  const result = parseWorkerSettings({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    BACKEND_TYPE: 'memory',
    ...environment,
  });
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return toXdsSourceOptions(result.settings, () => 0.5, undefined);
}

function waitsOf(environment: Record<string, string>): number[] {
  const { backoff } = optionsOf(environment);
  return [0, 1, 2, 3, 10].map((failures) => backoffDelayMs(backoff, failures));
}

// Proof of migrating.md: Waits between streams grow by half, or by `XDS_CLIENT_BACKOFF_RANDOM_FACTOR` when it is
// above 1, and restart once rules are accepted; jitter is off unless asked for
test('by default the waits grow by half from 10 s to 60 s, without jitter', (t) => {
  t.deepEqual(waitsOf({}), [10_000, 15_000, 22_500, 33_750, 60_000]);
  t.is(optionsOf().connectRetryMs, 3_000);
});

test('a factor above 1 is the growth itself', (t) => {
  const factor = { XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '2', XDS_CLIENT_BACKOFF_MAX_INTERVAL: '50s' };
  t.deepEqual(waitsOf(factor), [10_000, 20_000, 40_000, 50_000, 50_000]);
  t.is(optionsOf({ XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '1' }).backoff.multiplier, 2);
});

test('jitter is off by default', (t) => {
  const jitter = { XDS_CLIENT_BACKOFF_JITTER: 'true', XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '2s' };
  t.is(waitsOf(jitter)[0], 2_500);
});

test('no wait is 0, so that a server is not stormed', (t) => {
  const options = optionsOf({
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '0',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '0',
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '0',
  });
  t.is(options.connectRetryMs, 100);
  t.like(options.backoff, { initialMs: 100, maxMs: 10_000 });
});

test('settings that are sent to the server and accepted from it are passed on', (t) => {
  const options = optionsOf({
    CONFIG_GRPC_XDS_NODE_ID: 'n',
    CONFIG_GRPC_XDS_NODE_METADATA: 'a=b',
    CONFIG_GRPC_XDS_SERVER_URL: 'xds:1',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'X-Team:edge',
    XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '1000',
  });
  // Counters inside the process, and everything else by default.
  t.like(options, { nodeId: 'n', nodeMetadata: 'a=b', agreement: 'c86a7824' });
  t.deepEqual(options.servers[0], {
    url: 'xds:1',
    headers: { 'X-Team': 'edge' },
    readToken: undefined,
    tls: undefined,
    maxMessageBytes: 1_000,
  });
});

test('a client certificate is used only together with its key', (t) => {
  const files = {
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/ca',
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds.example',
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/cert',
  };
  t.deepEqual(optionsOf(files).servers[0].tls, {
    ca: '/ca',
    cert: undefined,
    key: undefined,
    san: 'xds.example',
  });
  const { tls } = optionsOf({ ...files, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/key' }).servers[0];
  t.like(tls, { cert: '/cert', key: '/key' });
  const { tls: bare } = optionsOf({ CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' }).servers[0];
  t.deepEqual(bare, { ca: undefined, cert: undefined, key: undefined, san: undefined });
});

test('each address of the list is a server with the same headers and TLS, and a wrong one is left out', (t) => {
  const options = optionsOf({
    CONFIG_GRPC_XDS_SERVER_URL: 'a:1, b:2,,c:port,a:1,dns:///c:3,http://d:4,[::1]:5,e',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'x-team:edge',
  });
  t.deepEqual(pluck(options.servers, 'url'), ['a:1', 'b:2', 'dns:///c:3', '[::1]:5', 'e']);
  t.true(options.servers.every(({ headers }) => headers['x-team'] === 'edge'));
});
