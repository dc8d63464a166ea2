import test from 'ava';
import { createRpcSpanDescription, toRpcConventions } from './tracing-rpc.ts';

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const name = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const service = 'envoy.service.ratelimit.v3.RateLimitService';

// Proof of migrating.md: Spans have the stable RPC attributes, and never `rpc.grpc.status_code`;
// `OTEL_SEMCONV_STABILITY_OPT_IN` brings back the older ones
test('by default a call only has the stable attributes', (t) => {
  const description = createRpcSpanDescription(path, toRpcConventions([]));
  t.is(description.name, name);
  t.deepEqual(description.method, { 'rpc.system.name': 'grpc', 'rpc.method': name });
  t.deepEqual(description.toPeer('10.0.0.7:4711'), {
    'network.peer.address': '10.0.0.7',
    'network.peer.port': 4711,
  });
});

test('rpc/old keeps system, service and the short name of the method', (t) => {
  const description = createRpcSpanDescription(path, toRpcConventions(['rpc/old']));
  t.is(description.name, name);
  t.deepEqual(description.method, {
    'rpc.system': 'grpc',
    'rpc.service': service,
    'rpc.method': 'ShouldRateLimit',
  });
  t.deepEqual(description.toPeer('10.0.0.7:4711'), {
    'net.sock.peer.addr': '10.0.0.7',
    'net.sock.peer.port': 4711,
  });
});

test('rpc/dup adds system and service, and the name of the method stays complete', (t) => {
  const description = createRpcSpanDescription(path, toRpcConventions(['http/dup', 'rpc/dup']));
  t.deepEqual(description.method, {
    'rpc.system.name': 'grpc',
    'rpc.system': 'grpc',
    'rpc.service': service,
    'rpc.method': name,
  });
  t.is(Object.keys(description.toPeer('10.0.0.7:4711')).length, 4);
});

test('rpc/dup has precedence over rpc/old, and other opt-ins have no effect', (t) => {
  t.is(toRpcConventions(['rpc/old', 'rpc/dup']), 'both');
  t.is(toRpcConventions(['http', 'database/dup', 'rpc']), 'stable');
});

test('in each form the status is a word under the stable name', (t) => {
  for (const conventions of ['stable', 'old', 'both'] as const) {
    const { toStatus } = createRpcSpanDescription(path, conventions);
    t.deepEqual(toStatus('UNKNOWN'), { 'rpc.response.status_code': 'UNKNOWN' });
  }
});

test('a peer is an address of either family with a port, or nothing', (t) => {
  const { toPeer } = createRpcSpanDescription(path, 'stable');
  t.deepEqual(toPeer('[::1]:4711'), { 'network.peer.address': '::1', 'network.peer.port': 4711 });
  t.deepEqual(toPeer('::1:4711'), { 'network.peer.address': '::1', 'network.peer.port': 4711 });
  t.deepEqual(toPeer('unknown'), {});
  t.deepEqual(toPeer('/run/ratelane.sock'), {});
  t.deepEqual(toPeer(''), {});
});
