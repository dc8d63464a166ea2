// The one-shot form of discovery: one request, one answer with all the resources that it asks for.

import type { Clock } from '../../shared/clock.ts';
import { type GrpcStatus, grpcStatus } from '../../shared/grpc/status.ts';
import { toDecodingProblem } from '../../shared/wire/decoding-problem.ts';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import type { DiscoveryRequestMessage } from '../../shared/wire/discovery-messages.ts';
import { toStringField } from '../../shared/wire/field-bytes.ts';
import type { SnapshotProvider } from '../snapshot/snapshot.ts';
import type { CallHandler, GrpcCall } from './grpc-call.ts';
import type { AdsLimits } from './limits.ts';
import { toNodeIdentity } from './node-identity.ts';
import type { SotwProtocol } from './protocol.ts';

export interface FetchDeps {
  readonly snapshots: SnapshotProvider;
  readonly clock: Clock;
  readonly limits: AdsLimits;
}

/** Answers whatever version the client says it holds: a call without a response is an error. */
export function createFetch(
  { snapshots, clock, limits }: FetchDeps,
  protocol: SotwProtocol,
  call: GrpcCall,
): CallHandler {
  const cancelTimer = clock.after(limits.drainTimeoutMs, () => call.abort());

  function refuse(status: GrpcStatus, text: string): void {
    call.finish(status, text);
  }

  return {
    onMessage(bytes) {
      let request: DiscoveryRequestMessage;
      try {
        request = protocol.decode(bytes);
      } catch (error) {
        refuse(grpcStatus.invalidArgument, `malformed request: ${toDecodingProblem(error)}`);
        return;
      }
      const typeUrl = request.typeUrl || protocol.impliedTypeUrl;
      const node = toNodeIdentity(request.node);
      if (typeUrl !== rateLimitConfigTypeUrl) {
        refuse(grpcStatus.invalidArgument, `type_url '${typeUrl?.slice(0, 200)}' is not served`);
        return;
      }
      if (node === undefined) {
        refuse(grpcStatus.invalidArgument, 'the node is too large');
        return;
      }
      const asked = { ...request, versionInfo: '', responseNonce: '' };
      const { response } = protocol.createSession().onRequest(asked, snapshots.current(node));
      if (response === undefined) {
        refuse(grpcStatus.unavailable, 'no configuration is loaded yet');
        return;
      }
      call.send([toStringField(5, response.nonce), ...response.body], () => {});
      call.finish(grpcStatus.ok, '');
    },
    onUnfinished: (reason) => refuse(grpcStatus.resourceExhausted, reason),
    onHalfClose() {
      refuse(grpcStatus.invalidArgument, 'the request is missing');
    },
    onClose: cancelTimer,
  };
}
