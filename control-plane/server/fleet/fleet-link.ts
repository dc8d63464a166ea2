// The server's end of one link: reads the worker's messages, within bounds, and sends requests to it.
// fleet.ts uses it.

import type { Clock } from '../../../shared/clock.ts';
import { type GrpcStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import { createTokenBucket } from '../../../shared/grpc/token-bucket.ts';
import { toDecodingProblem } from '../../../shared/wire/decoding-problem.ts';
import type { FleetLink } from '../../../shared/wire/fleet.ts';
import type {
  CountersAnswerMessage,
  FromWorkerMessage,
  HelloMessage,
  ReportMessage,
  ToWorkerMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { bytesPerToken, type CallHandler, type GrpcCall } from '../call-handler.ts';
import { helloMs, maxNameLength, maxUnsent, messageBurst, messagesPerSecond } from './limits.ts';

export interface FleetLinkDeps {
  readonly method: FleetLink;
  readonly clock: Clock;
  /** Called once, before any other callback. */
  readonly onHello: (hello: HelloMessage) => void;
  readonly onReport: (report: ReportMessage) => void;
  readonly onAnswer: (answer: CountersAnswerMessage) => void;
  /** Called when the link is ended because of the worker's messages. */
  readonly onRefused: (reason: string) => void;
  /** Called when this side ends the link, not when it is closed: the worker may open its next link before. */
  readonly onFinish: () => void;
  /** Always called, as the last callback. */
  readonly onClose: () => void;
}

/** The server's side of the stream: one callback per event. */
export class OpenLink implements CallHandler {
  readonly #deps: FleetLinkDeps;
  readonly #call: GrpcCall;
  readonly #bucket = createTokenBucket({ capacity: messageBurst, perSecond: messagesPerSecond });
  #hello: HelloMessage | undefined;
  #unsent = 0;
  #cancelTimer: () => void;

  constructor(deps: FleetLinkDeps, call: GrpcCall) {
    this.#deps = deps;
    this.#call = call;
    this.#cancelTimer = deps.clock.after(helloMs, () =>
      this.#refuse(grpcStatus.invalidArgument, 'no message arrived on this stream'),
    );
  }

  send(message: ToWorkerMessage): void {
    if (this.#unsent >= maxUnsent) {
      this.#deps.onRefused('the worker does not read its messages');
      this.#call.abort();
      return;
    }
    this.#unsent++;
    this.#call.send([this.#deps.method.responseSerialize(message)], () => {
      this.#unsent--;
    });
  }

  finish(status: GrpcStatus, text: string): void {
    this.#call.finish(status, text);
    this.#deps.onFinish();
  }

  onMessage(bytes: Buffer): void {
    const { method, clock } = this.#deps;
    this.#cancelTimer();
    const tokens = 1 + Math.floor(bytes.length / bytesPerToken);
    if (!this.#bucket.spend(tokens, clock.monotonicMs())) {
      this.#refuse(grpcStatus.resourceExhausted, 'too many messages on this link');
      return;
    }
    let message: FromWorkerMessage;
    try {
      message = method.requestDeserialize(bytes);
    } catch (error) {
      const text = `malformed message: ${toDecodingProblem(error)}`;
      this.#refuse(grpcStatus.invalidArgument, text);
      return;
    }
    const problem = this.#receive(message);
    if (problem !== undefined) this.#refuse(grpcStatus.invalidArgument, problem);
  }

  onUnfinished(reason: string): void {
    this.#refuse(grpcStatus.resourceExhausted, reason);
  }

  onHalfClose(): void {
    this.finish(grpcStatus.ok, '');
  }

  onClose(): void {
    this.#cancelTimer();
    this.#deps.onClose();
  }

  /** Why the link is refused. Unknown messages of newer workers are ignored. */
  #receive({ hello, report, counters }: FromWorkerMessage): string | undefined {
    const { onHello, onReport, onAnswer } = this.#deps;
    if (hello != null) {
      const texts = [hello.nodeId, hello.instance, hello.agreement];
      if (this.#hello !== undefined) return 'a second hello';
      if (texts.some(({ length }) => length > maxNameLength))
        return 'the hello has too long a name';
      if (hello.instance === '') return 'the hello has no instance';
      this.#hello = hello;
      onHello(hello);
    } else if (this.#hello === undefined) return 'the first message has to be a hello';
    else if (report != null) {
      onReport(report);
      // Shows the worker that it is still connected. Not sent while the worker has unread messages.
      if (this.#hello.awaitsAnswers === true && this.#unsent === 0) this.send({});
    } else if (counters != null) onAnswer(counters);
    return undefined;
  }

  #refuse(status: GrpcStatus, text: string): void {
    this.#deps.onRefused(text);
    this.finish(status, text);
  }
}
