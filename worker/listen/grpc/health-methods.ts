// grpc.health.v1.Health: the worker's health for load balancers and orchestrators.

import { grpcStatus } from '../../../shared/grpc/status.ts';
import { servingStatuses } from '../../../shared/wire/health-messages.ts';
import type { GrpcMethod, StreamMethod } from '../../grpc/method.ts';
import type { Health } from '../../health.ts';
import { decodeMessage } from './request-decoder.ts';
import { createUnaryMethod, type UnaryMethodDeps } from './unary-method.ts';
import { type WireReader, WireWriter, wireTypes } from './wire-format.ts';

/** Both names have the worker's state (behaviour: health-of-the-empty-name). */
const services = ['', 'ratelimit'];

export function createHealthMethods(
  deps: UnaryMethodDeps & { readonly health: Health },
): [path: string, method: GrpcMethod][] {
  const { health } = deps;

  const stateOf = (healthy: boolean) =>
    healthy ? servingStatuses.serving : servingStatuses.notServing;

  const check = createUnaryMethod(deps, {
    name: 'Check',
    decode: decodeHealthCheckRequest,
    handle(name, call) {
      if (services.includes(name)) {
        call.succeed(encodeCheckResponse(stateOf(health.healthy)));
      } else call.fail(grpcStatus.notFound, 'unknown service');
    },
  });

  const list = createUnaryMethod(deps, {
    name: 'List',
    decode: (bytes, start, end) => decodeMessage(bytes, start, end, skipFields),
    handle(_request, call) {
      call.succeed(encodeListResponse(stateOf(health.healthy)));
    },
  });

  // Like all streams, not counted in the statistics.
  const watch: StreamMethod = {
    kind: 'stream',
    open(caller) {
      let stopListening: (() => void) | undefined;
      let sent: number | undefined;
      const send = (status: number) => {
        if (status === sent) return;
        sent = status;
        caller.send(encodeCheckResponse(status));
      };
      return {
        message(bytes) {
          if (sent !== undefined) {
            const text = 'Watch takes one request';
            caller.finish({ status: grpcStatus.internal, text });
            return;
          }
          const decoded = decodeHealthCheckRequest(bytes, 0, bytes.length);
          if (!decoded.ok) {
            const text = `grpc: error unmarshalling request: ${decoded.problem}`;
            caller.finish({ status: grpcStatus.internal, text });
          } else if (!services.includes(decoded.message)) send(servingStatuses.serviceUnknown);
          else {
            send(stateOf(health.healthy));
            stopListening = health.onChange((healthy) => send(stateOf(healthy)));
          }
        },
        halfClose() {
          if (sent !== undefined) return;
          caller.finish({ status: grpcStatus.internal, text: 'Watch takes one request' });
        },
        closed: () => stopListening?.(),
      };
    },
  };

  return [
    ['/grpc.health.v1.Health/Check', check],
    ['/grpc.health.v1.Health/Watch', watch],
    ['/grpc.health.v1.Health/List', list],
  ];
}

function decodeHealthCheckRequest(bytes: Buffer, start: number, end: number) {
  return decodeMessage(bytes, start, end, (reader) => {
    let name = '';
    for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
      if (field === 1 && reader.wireType === wireTypes.bytes) name = reader.readString();
      else reader.skip(field);
    }
    return name;
  });
}

function encodeCheckResponse(status: number): Buffer {
  const writer = new WireWriter();
  writer.uint(1, status);
  return written(writer);
}

/** Encodes the same status for every service: on the wire a map is a list of entries. */
function encodeListResponse(status: number): Buffer {
  const writer = new WireWriter();
  for (const name of services) {
    const entry = writer.begin(1);
    writer.stringAlways(1, name);
    const response = writer.begin(2);
    writer.uint(1, status);
    writer.end(response);
    writer.end(entry);
  }
  return written(writer);
}

function written({ bytes, length }: WireWriter): Buffer {
  return Buffer.from(bytes.subarray(0, length));
}

function skipFields(reader: WireReader): void {
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) reader.skip(field);
}
