// One discovery stream: passes requests to its session, sends responses, and records what happens. The session decides
// the answers; the call handles bytes and connections.
import type { Clock } from '../../../shared/clock.ts';
import { type GrpcStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import { createTokenBucket, type TokenBucket } from '../../../shared/grpc/token-bucket.ts';
import { instanceKey } from '../../../shared/instance-key.ts';
import type { RepeatedLog } from '../../../shared/repeated-log.ts';
import { toDecodingProblem } from '../../../shared/wire/decoding-problem.ts';
import { rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';
import { bytesPerToken, type CallHandler, type GrpcCall } from '../call-handler.ts';
import { toAlreadyConnected } from '../fleet/worker-name.ts';
import {
  type NodeIdentity,
  type Snapshot,
  type SnapshotProvider,
  toStringField,
} from '../snapshot/snapshot.ts';
import {
  type AdsLimits,
  maxInstanceLength,
  maxNameLength,
  maxNames,
  type NameHolder,
  type RetainedNames,
  toRetainedBytes,
} from './limits.ts';
import {
  type AnyDiscoveryRequest,
  type DiscoveryMode,
  type DiscoveryProtocol,
  toNodeIdentity,
} from './protocol.ts';
import type { Answer, Session, SessionResponse } from './session.ts';
import { toInstance, type WorkerRecord, type WorkerRegistry } from './workers.ts';

export interface DiscoveryStreamDeps {
  readonly snapshots: SnapshotProvider;
  readonly workers: WorkerRegistry;
  readonly events: Readonly<Record<'info' | 'warning', RepeatedLog>>;
  readonly clock: Clock;
  readonly metrics: XdsMetrics;
  readonly limits: AdsLimits;
  readonly retainedNames: RetainedNames;
  readonly open: OpenStreams;
}

/** Why the server ended a stream, or did not open one. */
export type DropReason =
  | 'unauthenticated'
  | 'too_many_streams'
  | 'too_many_requests'
  | 'too_many_names'
  | 'already_connected'
  | 'bad_request'
  | 'unfinished_request'
  | 'slow_reader';

/** The counters of the ADS server, for the exporter. */
export interface XdsMetrics {
  /** Gauge: streams open now, by protocol. */
  streams(mode: DiscoveryMode, open: number): void;
  /** Counters. */
  responseSent(mode: DiscoveryMode, bytes: number): void;
  acked(mode: DiscoveryMode): void;
  nacked(mode: DiscoveryMode): void;
  dropped(reason: DropReason): void;
}

export interface OpenStream {
  refresh(): void;
  finish(status: GrpcStatus, text: string): void;
}

const streamsPerTurn = 32;

/** All open streams. Notifies them of a change in batches, so that a thousand pushes do not block the process. */
export class OpenStreams {
  readonly #open: Readonly<Record<DiscoveryMode, Set<OpenStream>>> = {
    sotw: new Set(),
    delta: new Set(),
  };
  /** Streams that have not been notified of the last change yet. */
  readonly #waiting = new Set<OpenStream>();
  #turn: NodeJS.Immediate | undefined;

  /** Returns the number of open streams of this protocol; so does `delete`. */
  add(mode: DiscoveryMode, stream: OpenStream): number {
    return this.#open[mode].add(stream).size;
  }

  delete(mode: DiscoveryMode, stream: OpenStream): number {
    this.#open[mode].delete(stream);
    return this.#open[mode].size;
  }

  /** Refreshes every stream once; streams still waiting for an earlier change keep their position and receive both
   * changes at once. */
  refresh(): void {
    for (const stream of this.#list()) this.#waiting.add(stream);
    this.#turn ??= setImmediate(() => this.#refreshSome(this.#waiting.values()));
  }

  finish(status: GrpcStatus, text: string): void {
    for (const stream of this.#list()) stream.finish(status, text);
  }

  /** Stops all notifications. */
  stop(): void {
    clearImmediate(this.#turn);
    this.#waiting.clear();
  }

  #list(): readonly OpenStream[] {
    return [...this.#open.sotw, ...this.#open.delta];
  }

  /** Streams that start to wait meanwhile are last. */
  #refreshSome(waiting: Iterator<OpenStream, undefined>): void {
    for (let left = streamsPerTurn; left > 0; left--) {
      const stream = waiting.next().value;
      if (stream === undefined) {
        this.#turn = undefined;
        return;
      }
      this.#waiting.delete(stream);
      stream.refresh();
    }
    this.#turn = setImmediate(() => this.#refreshSome(waiting));
  }
}

/** Characters of a worker's refusal in the log; the record keeps more. */
const maxShownText = 1_000;
const maxShownId = 200;

export class DiscoveryStream<Request extends AnyDiscoveryRequest>
  implements CallHandler, OpenStream, NameHolder
{
  readonly #deps: DiscoveryStreamDeps;
  readonly #protocol: DiscoveryProtocol<Request>;
  readonly #call: GrpcCall;
  readonly #session: Session<Request>;
  readonly #bucket: TokenBucket;
  #node: NodeIdentity | undefined;
  #record: WorkerRecord | undefined;
  #cancelFirstTimer: (() => void) | undefined;
  #cancelDrainTimer: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: DiscoveryStreamDeps, protocol: DiscoveryProtocol<Request>, call: GrpcCall) {
    this.#deps = deps;
    this.#protocol = protocol;
    this.#call = call;
    this.#session = protocol.createSession();
    const { limits, clock, open, metrics } = deps;
    this.#bucket = createTokenBucket({
      capacity: limits.requestBurst,
      perSecond: limits.requestsPerSecond,
    });
    this.#cancelFirstTimer = clock.after(limits.requestMs, () =>
      this.#refuse('bad_request', grpcStatus.invalidArgument, 'no request arrived on this stream'),
    );
    metrics.streams(protocol.mode, open.add(protocol.mode, this));
  }

  onMessage(bytes: Buffer): void {
    this.#cancelFirstTimer?.();
    this.#cancelFirstTimer = undefined;
    const request = this.#readRequest(bytes);
    if (request === undefined || this.#node === undefined) return;
    const typeUrl = request.typeUrl || this.#protocol.impliedTypeUrl;
    if (typeUrl !== rateLimitConfigTypeUrl) {
      if (this.#spendTokens(bytes, 1)) this.#passOver(typeUrl ?? '');
      return;
    }
    const isFirst = this.#record === undefined;
    if (isFirst) this.#node = { ...this.#node, holds: this.#protocol.versionIn(request) };
    const node = this.#node;
    this.#record ??= this.#join(node);
    if (this.#record === undefined) return;
    const { snapshots, retainedNames, metrics } = this.#deps;
    const session = this.#session;
    const current = snapshots.current(node);
    const { response, answer, changesNames } = session.onRequest(request, current);
    if (isFirst || changesNames)
      retainedNames.retain(this, nodeBytes(node) + session.retainedBytes);
    if (this.#isClosed) return;
    // An acknowledgement costs nothing, since there is one per response, unless it triggers the next response, which it
    // would answer in the same way.
    if (!this.#spendTokens(bytes, answer === undefined || changesNames ? 1 : 0)) return;
    if (session.wantedNames > maxNames) {
      this.#refuse('bad_request', grpcStatus.resourceExhausted, 'too many resource names');
      return;
    }
    // The versions in a first request refer to an earlier stream.
    if (!isFirst && answer?.kind === 'holds') metrics.acked(this.#protocol.mode);
    if (!isFirst && answer?.kind === 'refuses') metrics.nacked(this.#protocol.mode);
    this.#recordAnswer(answer, current);
    this.#send(response);
  }

  onUnfinished(reason: string): void {
    this.#refuse('unfinished_request', grpcStatus.resourceExhausted, reason);
  }

  onHalfClose(): void {
    this.finish(grpcStatus.ok, '');
  }

  onClose(isBroken: boolean): void {
    const { retainedNames, open, metrics, events } = this.#deps;
    const { mode } = this.#protocol;
    this.#isClosed = true;
    metrics.streams(mode, open.delete(mode, this));
    retainedNames.retain(this, 0);
    this.#cancelFirstTimer?.();
    this.#cancelDrainTimer?.();
    if (this.#record === undefined) return;
    this.#record.left(isBroken ? 'broke' : 'goodbye');
    events.info.report(`xDS: ${this.#whoIsIt()} left (${mode})`, 'left');
  }

  /** The node's snapshot may have changed. */
  refresh(): void {
    if (this.#node === undefined) return;
    this.#send(this.#session.onSnapshot(this.#deps.snapshots.current(this.#node)));
  }

  finish(status: GrpcStatus, text: string): void {
    this.#call.finish(status, text);
    // Not only when the stream is closed: the worker may open its next stream earlier.
    this.#record?.left('goodbye');
  }

  closeAsLargest(): void {
    this.#cutOff('too_many_names', 'it holds the most of the resource names that all streams hold');
  }

  #whoIsIt(): string {
    const { peerAddress } = this.#call;
    if (this.#node === undefined) return peerAddress;
    return `worker '${this.#node.id.slice(0, maxShownId)}' at ${peerAddress}`;
  }

  #refuse(reason: DropReason, status: GrpcStatus, text: string): void {
    const { metrics, events } = this.#deps;
    metrics.dropped(reason);
    events.warning.report(`xDS: the stream of ${this.#whoIsIt()} was ended: ${text}`, reason);
    this.finish(status, text);
  }

  #send(response: SessionResponse | undefined): void {
    if (response === undefined || this.#isClosed) return;
    const { clock, limits, metrics } = this.#deps;
    const { version, nonce, body } = response;
    const parts = [toStringField(5, nonce), ...body];
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    this.#record?.sent(version);
    metrics.responseSent(this.#protocol.mode, bytes);
    this.#cancelDrainTimer = clock.after(limits.drainTimeoutMs, () => {
      const seconds = limits.drainTimeoutMs / 1000;
      this.#cutOff('slow_reader', `it did not read a response of ${bytes} bytes in ${seconds} s`);
    });
    this.#call.send(parts, () => {
      this.#cancelDrainTimer?.();
      this.#cancelDrainTimer = undefined;
      this.#send(this.#session.onSent());
    });
  }

  /** Ends the stream at once and frees its memory. */
  #cutOff(reason: DropReason, text: string): void {
    const { metrics, events } = this.#deps;
    metrics.dropped(reason);
    events.warning.report(`xDS: ${this.#whoIsIt()} was cut off: ${text}`, reason);
    this.#isClosed = true;
    this.#call.abort();
    this.#record?.left('goodbye');
  }

  /** `current` is the node's whole snapshot, whatever part of it the client wants. */
  #recordAnswer(answer: Answer | undefined, current: Snapshot | undefined): void {
    if (answer === undefined) return;
    if (answer.kind !== 'refuses') {
      this.#record?.acked(answer.version);
      return;
    }
    const { version, text, holds } = answer;
    if (holds !== '') this.#record?.acked(holds);
    this.#record?.nacked(version, text);
    const what = version === undefined ? 'a version of an earlier stream' : `version ${version}`;
    const shown = text.length > maxShownText ? `${text.slice(0, maxShownText)}...` : text;
    // Keyed by version: all workers refuse a bad one at the same time, with the same message. The version is that of
    // the whole snapshot, since selections have their own versions.
    const kind = version === undefined ? 'nack of an earlier stream' : `nack ${current?.version}`;
    this.#deps.events.warning.report(`xDS: ${this.#whoIsIt()} refused ${what}: ${shown}`, kind);
  }

  /** Undefined when the bytes are not a valid request; the stream has been ended then. */
  #readRequest(bytes: Buffer): Request | undefined {
    const protocol = this.#protocol;
    let problem: string | undefined;
    try {
      const request = protocol.decode(bytes);
      if (request.typeUrl === '' && protocol.impliedTypeUrl === undefined) {
        problem = 'type_url is required';
      } else if (protocol.namesIn(request).some((name) => name.length > maxNameLength)) {
        problem = 'a resource name or a version is too long';
      } else {
        // A stream's node is the one in its first request, whatever its type.
        this.#node ??= toNodeIdentity(request.node);
        if (this.#node === undefined) problem = 'the node is too large';
        else if ((toInstance(this.#node)?.length ?? 0) <= maxInstanceLength) return request;
        else problem = `${instanceKey} in the node's metadata is too long`;
      }
    } catch (error) {
      problem = `malformed request: ${toDecodingProblem(error)}`;
    }
    this.#refuse('bad_request', grpcStatus.invalidArgument, problem);
    return undefined;
  }

  /** An aggregated stream may request other types too; there are none here. */
  #passOver(typeUrl: string): void {
    const text = `type_url '${typeUrl.slice(0, 200)}' is not served`;
    if (this.#protocol.impliedTypeUrl === undefined) {
      const report = `xDS: a request of ${this.#whoIsIt()} stays unanswered: ${text}`;
      this.#deps.events.info.report(report, 'other type');
    } else this.#refuse('bad_request', grpcStatus.invalidArgument, text);
  }

  /** Undefined when the worker is already connected; the stream has been ended then. */
  #join(who: NodeIdentity): WorkerRecord | undefined {
    const { workers, events } = this.#deps;
    const { mode } = this.#protocol;
    const instance = toInstance(who);
    const other = instance === undefined ? undefined : workers.findInstance(instance);
    if (instance !== undefined && other !== undefined) {
      const text = toAlreadyConnected(instance, other.node.id, other.address);
      this.#refuse('already_connected', grpcStatus.alreadyExists, text);
      return undefined;
    }
    events.info.report(`xDS: ${this.#whoIsIt()} connected (${mode})`, 'connected');
    return workers.joined(who, this.#call.peerAddress, mode, (snapshot) =>
      this.#session.wantedVersion(snapshot),
    );
  }

  #spendTokens(bytes: Buffer, base: 0 | 1): boolean {
    const tokens = base + Math.floor(bytes.length / bytesPerToken);
    if (this.#bucket.spend(tokens, this.#deps.clock.monotonicMs())) return true;
    const text = 'too many requests on this stream';
    this.#refuse('too_many_requests', grpcStatus.resourceExhausted, text);
    return false;
  }
}

function nodeBytes({ id, cluster, metadata }: NodeIdentity): number {
  return toRetainedBytes([id, cluster, ...Array.from(metadata).flat()]);
}
