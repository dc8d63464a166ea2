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
  /** Once, before anything else. */
  readonly onHello: (hello: HelloMessage) => void;
  readonly onReport: (report: ReportMessage) => void;
  readonly onAnswer: (answer: CountersAnswerMessage) => void;
  /** Called when the link is ended because of the worker's messages. */
  readonly onRefused: (reason: string) => void;
  /** It is ended from here. Not only when it is closed: the worker may open its next link before. */
  readonly onFinish: () => void;
  /** Always, as the last. */
  readonly onClose: () => void;
}

export interface OpenLink {
  readonly handler: CallHandler;
  send(message: ToWorkerMessage): void;
  finish(status: GrpcStatus, text: string): void;
}

export function openFleetLink(deps: FleetLinkDeps, call: GrpcCall): OpenLink {
  const { method, clock } = deps;
  const bucket = createTokenBucket({ capacity: messageBurst, perSecond: messagesPerSecond });
  let hasHello = false;
  let awaitsAnswers = false;
  let unsent = 0;
  let cancelTimer: (() => void) | undefined = clock.after(helloMs, () =>
    refuse(grpcStatus.invalidArgument, 'no message came on this stream'),
  );

  function finish(status: GrpcStatus, text: string): void {
    call.finish(status, text);
    deps.onFinish();
  }

  function refuse(status: GrpcStatus, text: string): void {
    deps.onRefused(text);
    finish(status, text);
  }

  /** The worker sees that it is still connected. Not beside what it has not read yet. */
  function acknowledge(): void {
    if (awaitsAnswers && unsent === 0) send({});
  }

  function send(message: ToWorkerMessage): void {
    if (unsent >= maxUnsent) {
      deps.onRefused('the worker does not read what it is sent');
      call.abort();
      return;
    }
    unsent++;
    call.send([method.responseSerialize(message)], () => {
      unsent--;
    });
  }

  function take({ hello, report, counters }: FromWorkerMessage): void {
    if (hello != null) {
      const texts = [hello.nodeId, hello.instance, hello.agreement];
      if (hasHello) refuse(grpcStatus.invalidArgument, 'a second hello');
      else if (texts.some(({ length }) => length > maxNameLength)) {
        refuse(grpcStatus.invalidArgument, 'the hello has too long a name');
      } else if (hello.instance === '') {
        refuse(grpcStatus.invalidArgument, 'the hello has no instance');
      } else {
        hasHello = true;
        awaitsAnswers = hello.awaitsAnswers === true;
        deps.onHello(hello);
      }
    } else if (!hasHello) refuse(grpcStatus.invalidArgument, 'the first message has to be a hello');
    else if (report != null) {
      deps.onReport(report);
      acknowledge();
    } else if (counters != null) deps.onAnswer(counters);
    // Unknown messages of newer workers are ignored.
  }

  return {
    handler: {
      onMessage(bytes) {
        cancelTimer?.();
        cancelTimer = undefined;
        const tokens = 1 + Math.floor(bytes.length / bytesPerToken);
        if (!bucket.take(tokens, clock.monotonicMs())) {
          refuse(grpcStatus.resourceExhausted, 'too many messages on this link');
          return;
        }
        let message: FromWorkerMessage;
        try {
          message = method.requestDeserialize(bytes);
        } catch (error) {
          refuse(grpcStatus.invalidArgument, `malformed message: ${toDecodingProblem(error)}`);
          return;
        }
        take(message);
      },
      onUnfinished: (reason) => refuse(grpcStatus.resourceExhausted, reason),
      onHalfClose: () => finish(grpcStatus.ok, ''),
      onClose() {
        cancelTimer?.();
        deps.onClose();
      },
    },
    send,
    finish,
  };
}
