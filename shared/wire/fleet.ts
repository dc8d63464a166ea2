// Loads the interface of the link between workers and their control plane, and gives it types.
import type { MethodDefinition } from '@grpc/proto-loader';
import { loadSync } from '@grpc/proto-loader';
import { ownPath } from '../own-files.ts';
import type { FromWorkerMessage, ToWorkerMessage } from './fleet-messages.ts';

/**
 * Messages are plain objects: camelCase names, every field present, integers as numbers. The functions for
 * deserializing throw on bytes that are not the message.
 */
export type FleetLink = MethodDefinition<
  FromWorkerMessage,
  ToWorkerMessage,
  FromWorkerMessage,
  ToWorkerMessage
>;

/** Reads the file of proto/, which takes a millisecond: call it once per process, in the composition root. */
export function loadFleetLink(): FleetLink {
  const definition = loadSync('ratelane/fleet/v1/fleet.proto', {
    includeDirs: [ownPath('proto')],
    longs: Number,
    enums: Number,
    defaults: true,
    oneofs: true,
  });
  const service = definition['ratelane.fleet.v1.Fleet'] as unknown as { readonly Link: FleetLink };
  return service.Link;
}
