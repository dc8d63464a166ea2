// One discovery stream: requests go to its session, responses go out, and what happens is recorded. The
// session decides the answers, the call handles bytes and connections.

import type { Clock } from '../../shared/clock.ts';
import { type GrpcStatus, grpcStatus } from '../../shared/grpc/status.ts';
import { createTokenBucket } from '../../shared/grpc/token-bucket.ts';
import { instanceKey } from '../../shared/instance-key.ts';
import type { RepeatedLog } from '../../shared/repeated-log.ts';
import { toDecodingProblem } from '../../shared/wire/decoding-problem.ts';
import { rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import { toStringField } from '../../shared/wire/field-bytes.ts';
import type { NodeIdentity, Snapshot, SnapshotProvider } from '../snapshot/snapshot.ts';
import type { CallHandler, GrpcCall } from './grpc-call.ts';
import { type KeptNames, toKeptBytes } from './kept-names.ts';
import {
  type AdsLimits,
  bytesPerToken,
  maxInstanceLength,
  maxNameLength,
  maxNames,
} from './limits.ts';
import type { DropReason, XdsMetrics } from './metrics.ts';
import { toNodeIdentity } from './node-identity.ts';
import type { AnyDiscoveryRequest, DiscoveryProtocol } from './protocol.ts';
import type { Answer, SessionResponse } from './session.ts';
import { toAlreadyConnected } from './worker-name.ts';
import { toInstance, type WorkerRecord, type WorkerRegistry } from './workers.ts';

export interface DiscoveryStreamDeps {
  readonly snapshots: SnapshotProvider;
  readonly workers: WorkerRegistry;
  readonly events: Readonly<Record<'info' | 'warning', RepeatedLog>>;
  readonly clock: Clock;
  readonly metrics: XdsMetrics;
  readonly limits: AdsLimits;
  readonly keptNames: KeptNames;
}

export interface DiscoveryStream extends CallHandler {
  /** The node's snapshot may have changed. */
  refresh(): void;
  finish(status: GrpcStatus, text: string): void;
}

/** Characters of a worker's refusal in the log; the record has more. */
const maxShownText = 1_000;
const maxShownId = 200;

export function createDiscoveryStream<Request extends AnyDiscoveryRequest>(
  deps: DiscoveryStreamDeps,
  protocol: DiscoveryProtocol<Request>,
  call: GrpcCall,
): DiscoveryStream {
  const { snapshots, events, clock, metrics, limits } = deps;
  const { mode } = protocol;
  const session = protocol.createSession();
  const bucket = createTokenBucket({
    capacity: limits.requestBurst,
    perSecond: limits.requestsPerSecond,
  });
  let node: NodeIdentity | undefined;
  let record: WorkerRecord | undefined;
  let cancelDrainTimer: (() => void) | undefined;
  let isClosed = false;
  const keep = deps.keptNames.open(() => {
    cutOff('too_many_names', 'it keeps the most of the names that are kept for all streams');
  });
  let cancelFirstTimer: (() => void) | undefined = clock.after(limits.requestMs, () =>
    refuse('bad_request', grpcStatus.invalidArgument, 'no request came on this stream'),
  );

  function whoIsIt(): string {
    if (node === undefined) return call.peerAddress;
    return `worker '${node.id.slice(0, maxShownId)}' at ${call.peerAddress}`;
  }

  function finish(status: GrpcStatus, text: string): void {
    call.finish(status, text);
    // Not only when it is closed: the worker may open its next stream before.
    record?.left('goodbye');
  }

  function refuse(reason: DropReason, status: GrpcStatus, text: string): void {
    metrics.dropped(reason);
    events.warning.report(`xDS: the stream of ${whoIsIt()} was ended: ${text}`, reason);
    finish(status, text);
  }

  function send(response: SessionResponse | undefined): void {
    if (response === undefined || isClosed) return;
    const { version, nonce, body } = response;
    const parts = [toStringField(5, nonce), ...body];
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    record?.sent(version);
    metrics.responseSent(mode, bytes);
    cancelDrainTimer = clock.after(limits.drainTimeoutMs, () => {
      const seconds = limits.drainTimeoutMs / 1000;
      cutOff('slow_reader', `it did not read a response of ${bytes} bytes in ${seconds} s`);
    });
    call.send(parts, () => {
      cancelDrainTimer?.();
      cancelDrainTimer = undefined;
      send(session.onSent());
    });
  }

  /** Ends it at once and frees what is held for the stream. */
  function cutOff(reason: DropReason, text: string): void {
    metrics.dropped(reason);
    events.warning.report(`xDS: ${whoIsIt()} was cut off: ${text}`, reason);
    isClosed = true;
    call.abort();
    record?.left('goodbye');
  }

  /** `current` is the node's snapshot, whatever part of it the client wants. */
  function recordAnswer(answer: Answer | undefined, current: Snapshot | undefined): void {
    if (answer === undefined) return;
    if (answer.kind !== 'refuses') {
      record?.acked(answer.version);
      return;
    }
    const { version, text, holds } = answer;
    if (holds !== '') record?.acked(holds);
    record?.nacked(version, text);
    const what = version === undefined ? 'a version of an earlier stream' : `version ${version}`;
    const shown = text.length > maxShownText ? `${text.slice(0, maxShownText)}...` : text;
    // Keyed by version: all workers refuse a bad one at once, in the same words. By the version of the
    // whole snapshot, since selections have versions of their own.
    const kind = version === undefined ? 'nack of an earlier stream' : `nack ${current?.version}`;
    events.warning.report(`xDS: ${whoIsIt()} refused ${what}: ${shown}`, kind);
  }

  /** Undefined, with the stream ended, when the bytes are not a request. */
  function readRequest(bytes: Buffer): Request | undefined {
    let problem: string | undefined;
    try {
      const request = protocol.decode(bytes);
      if (request.typeUrl === '' && protocol.impliedTypeUrl === undefined) {
        problem = 'type_url is required';
      } else if (protocol.namesIn(request).some((name) => name.length > maxNameLength)) {
        problem = 'a resource name or a version is too long';
      } else {
        // A stream's node is that of its first request, whatever its type.
        node ??= toNodeIdentity(request.node);
        if (node === undefined) problem = 'the node is too large';
        else if ((toInstance(node)?.length ?? 0) <= maxInstanceLength) return request;
        else problem = `${instanceKey} in the node's metadata is too long`;
      }
    } catch (error) {
      problem = `malformed request: ${toDecodingProblem(error)}`;
    }
    refuse('bad_request', grpcStatus.invalidArgument, problem);
    return undefined;
  }

  /** An aggregated stream may ask for other types too; we have none. */
  function passOver(typeUrl: string): void {
    const text = `type_url '${typeUrl.slice(0, 200)}' is not served`;
    if (protocol.impliedTypeUrl === undefined) {
      events.info.report(`xDS: a request of ${whoIsIt()} stays unanswered: ${text}`, 'other type');
    } else refuse('bad_request', grpcStatus.invalidArgument, text);
  }

  /** Undefined, with the stream ended, when the worker is connected already. */
  function join(who: NodeIdentity): WorkerRecord | undefined {
    const instance = toInstance(who);
    const other = instance === undefined ? undefined : deps.workers.findInstance(instance);
    if (instance !== undefined && other !== undefined) {
      const text = toAlreadyConnected(instance, other.node.id, other.address);
      refuse('already_connected', grpcStatus.alreadyExists, text);
      return undefined;
    }
    events.info.report(`xDS: ${whoIsIt()} connected (${mode})`, 'connected');
    return deps.workers.joined(who, call.peerAddress, mode, session.wantedVersion);
  }

  function takeTokens(bytes: Buffer, base: 0 | 1): boolean {
    const tokens = base + Math.floor(bytes.length / bytesPerToken);
    if (bucket.take(tokens, clock.monotonicMs())) return true;
    refuse('too_many_requests', grpcStatus.resourceExhausted, 'too many requests on this stream');
    return false;
  }

  return {
    onMessage(bytes) {
      cancelFirstTimer?.();
      cancelFirstTimer = undefined;
      const request = readRequest(bytes);
      if (request === undefined || node === undefined) return;
      const typeUrl = request.typeUrl || protocol.impliedTypeUrl;
      if (typeUrl !== rateLimitConfigTypeUrl) {
        if (takeTokens(bytes, 1)) passOver(typeUrl ?? '');
        return;
      }
      const isFirst = record === undefined;
      record ??= join(node);
      if (record === undefined) return;
      const current = snapshots.current(node);
      const { response, answer, changesNames } = session.onRequest(request, current);
      if (isFirst || changesNames) keep(nodeBytes(node) + session.keptBytes);
      if (isClosed) return;
      // An acknowledgement costs nothing: there is one per response. Unless it triggers the next response,
      // which it would answer in the same way.
      if (!takeTokens(bytes, answer === undefined || changesNames ? 1 : 0)) return;
      if (session.wantedNames > maxNames) {
        refuse('bad_request', grpcStatus.resourceExhausted, 'too many resource names');
        return;
      }
      // The versions of a first request are about an earlier stream.
      if (!isFirst && answer?.kind === 'holds') metrics.acked(mode);
      if (!isFirst && answer?.kind === 'refuses') metrics.nacked(mode);
      recordAnswer(answer, current);
      send(response);
    },
    onUnfinished(reason) {
      refuse('unfinished_request', grpcStatus.resourceExhausted, reason);
    },
    onHalfClose() {
      finish(grpcStatus.ok, '');
    },
    onClose(isBroken) {
      isClosed = true;
      keep(0);
      cancelFirstTimer?.();
      cancelDrainTimer?.();
      if (record === undefined) return;
      record.left(isBroken ? 'broke' : 'goodbye');
      events.info.report(`xDS: ${whoIsIt()} left (${mode})`, 'left');
    },
    refresh() {
      // Without a record no request has asked for anything yet.
      if (record === undefined || node === undefined) return;
      send(session.onSnapshot(snapshots.current(node)));
    },
    finish,
  };
}

function nodeBytes({ id, cluster, metadata }: NodeIdentity): number {
  return toKeptBytes([id, cluster, ...Array.from(metadata).flat()]);
}
