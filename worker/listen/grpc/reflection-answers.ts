// Server reflection by @grpc/reflection, over our transport. Loaded on the first request, see reflection-methods.ts.
import { EventEmitter } from 'node:events';
import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { AnyDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { errorText } from '../../../shared/errors.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { StreamMethod } from '../../grpc/method.ts';

/**
 * The methods by path: every version of the protocol that the library supports. `descriptors` are FileDescriptorProtos
 * in base64, as a compiler made them: those of @grpc/proto-loader lack imports and JSON names.
 */
export function createReflectionAnswers(descriptors: readonly string[]): Map<string, StreamMethod> {
  const fileDescriptorProtos = descriptors.map((text) => Buffer.from(text, 'base64'));
  const methods = new Map<string, StreamMethod>();
  // The library reads nothing else of a definition.
  new ReflectionService({ all: { fileDescriptorProtos } as unknown as AnyDefinition }).addToServer({
    addService(service: ServiceDefinition, implementation: UntypedServiceImplementation) {
      for (const [name, method] of Object.entries(service)) {
        const handle = implementation[name] as unknown as ((stream: Exchange) => void) | undefined;
        if (handle !== undefined) methods.set(method.path, toStreamMethod(method, handle));
      }
    },
  });
  return methods;
}

/** Those parts of a grpc-js stream that the library's handler uses: the events 'data' and 'end', `write` and `end`. */
interface Exchange extends EventEmitter {
  write(message: object): void;
  end(): void;
}

function toStreamMethod(
  method: ServiceDefinition[string],
  handle: (stream: Exchange) => void,
): StreamMethod {
  return {
    kind: 'stream',
    open(caller) {
      const exchange: Exchange = Object.assign(new EventEmitter(), {
        write: (message: object) => caller.send(method.responseSerialize(message)),
        end: () => caller.finish(),
      });
      handle(exchange);
      return {
        message(bytes) {
          try {
            exchange.emit('data', method.requestDeserialize(bytes));
          } catch (error) {
            const text = `grpc: error unmarshalling request: ${errorText(error)}`;
            caller.finish({ status: grpcStatus.internal, text });
          }
        },
        halfClose: () => exchange.emit('end'),
        closed() {},
      };
    },
  };
}
