// Server reflection by @grpc/reflection, over our transport. Loaded on the first request, see reflection-methods.ts.
import { EventEmitter } from 'node:events';
import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { PackageDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { errorText } from '../../../shared/errors.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { StreamMethod } from '../../grpc/method.ts';
import { repairDescriptions } from './described-files.ts';

/**
 * The methods by path: every version of the protocol that the library supports, each describing every service of the
 * definition.
 */
export function createReflectionAnswers(definition: PackageDefinition): Map<string, StreamMethod> {
  const methods = new Map<string, StreamMethod>();
  new ReflectionService(repairDescriptions(definition)).addToServer({
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
