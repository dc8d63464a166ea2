// Loads the interface of the link between workers and their control plane, and gives it types.
import type { MethodDefinition } from '@grpc/proto-loader';
import type { FromWorkerMessage, ToWorkerMessage } from './fleet-messages.ts';
import { loadDefinitions } from './service-definitions.ts';

/** Integers are numbers. The functions for deserializing throw on bytes that are not the message. */
export type FleetLink = MethodDefinition<
  FromWorkerMessage,
  ToWorkerMessage,
  FromWorkerMessage,
  ToWorkerMessage
>;

/** Call it once per process, in the composition root. */
export function loadFleetLink(): FleetLink {
  const options = { longs: Number, enums: Number };
  const definitions = loadDefinitions(['ratelane/fleet/v1/fleet.proto'], options);
  return (definitions['ratelane.fleet.v1.Fleet'] as { readonly Link: FleetLink }).Link;
}
