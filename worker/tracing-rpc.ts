// The attributes of a server span, in the three forms of OTEL_SEMCONV_STABILITY_OPT_IN (behaviour: spans).
import type { SpanAttributes } from './tracing/tracer.ts';

/** rpc/dup together with rpc/old means rpc/dup: a user that asks for both sets gets both. */
export type RpcConventions = 'stable' | 'old' | 'both';

/** `optIns` are the items of the setting; those that do not concern RPC are ignored. */
export function toRpcConventions(optIns: readonly string[]): RpcConventions {
  if (optIns.includes('rpc/dup')) return 'both';
  return optIns.includes('rpc/old') ? 'old' : 'stable';
}

export interface RpcSpanDescription {
  /** The name in the form `<service>/<method>`. */
  readonly name: string;
  /** The attributes that every call has. */
  readonly method: SpanAttributes;
  /** `peer` has the form `address:port`. */
  toPeer(peer: string): SpanAttributes;
  /** The name of a gRPC status, such as OK. */
  toStatus(status: string): SpanAttributes;
}

/** `path` is the method's, such as `/grpc.health.v1.Health/Check`. */
export function createRpcSpanDescription(
  path: string,
  conventions: RpcConventions,
): RpcSpanDescription {
  const name = path.slice(1);
  const separator = name.lastIndexOf('/');
  const service = name.slice(0, separator);
  const old = { 'rpc.system': 'grpc', 'rpc.service': service };
  const stable = { 'rpc.system.name': 'grpc', 'rpc.method': name };
  const hasOld = conventions !== 'stable';
  const hasStable = conventions !== 'old';
  return {
    name,
    method: {
      ...(hasOld ? { ...old, 'rpc.method': name.slice(separator + 1) } : {}),
      ...(hasStable ? stable : {}),
    },
    toPeer(peer) {
      const colon = peer.lastIndexOf(':');
      const port = Number(peer.slice(colon + 1));
      if (colon < 1 || !Number.isInteger(port)) return {};
      const address = peer.slice(0, colon).replace(/^\[|\]$/g, '');
      return {
        ...(hasOld ? { 'net.sock.peer.addr': address, 'net.sock.peer.port': port } : {}),
        ...(hasStable ? { 'network.peer.address': address, 'network.peer.port': port } : {}),
      };
    },
    toStatus: (status) => ({ 'rpc.response.status_code': status }),
  };
}
