// The example application of the router behind Envoy, which passes on its events, sockets, uploads and broken streams.
import test from 'ava';
import { testBoard } from '../contract/router-application.ts';
import { startEnvoy } from '../support/envoy.ts';
import { freePort } from '../support/free-port.ts';
import { ownedByFile } from '../support/owner.ts';

const extension = (name: string, type: string, fields: object) => ({
  name,
  typed_config: { '@type': `type.googleapis.com/envoy.extensions.${type}`, ...fields },
});

/** With WebSockets, and without a time limit of routes, which would end events. */
function toConfig(port: number, upstream: number): string {
  const route = { match: { prefix: '/' }, route: { cluster: 'board', timeout: '0s' } };
  const manager = extension(
    'envoy.filters.network.http_connection_manager',
    'filters.network.http_connection_manager.v3.HttpConnectionManager',
    {
      stat_prefix: 'board',
      upgrade_configs: [{ upgrade_type: 'websocket' }],
      route_config: { virtual_hosts: [{ name: 'board', domains: ['*'], routes: [route] }] },
      http_filters: [extension('envoy.filters.http.router', 'filters.http.router.v3.Router', {})],
    },
  );
  const toAddress = (port_value: number) => ({
    socket_address: { address: '127.0.0.1', port_value },
  });
  const endpoint = { endpoint: { address: toAddress(upstream) } };
  return JSON.stringify({
    static_resources: {
      listeners: [{ address: toAddress(port), filter_chains: [{ filters: [manager] }] }],
      clusters: [
        {
          name: 'board',
          load_assignment: { cluster_name: 'board', endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  });
}

const owner = ownedByFile(test);

testBoard({
  name: 'behind Envoy',
  async inFront(url) {
    const port = await freePort();
    await startEnvoy(owner, toConfig(port, Number(new URL(url).port)), port);
    return `http://127.0.0.1:${port}`;
  },
});
