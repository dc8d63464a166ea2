// Lines at the end of a commit's message, or of a change's, by which its author says how to serve it: they
// travel with the revision.
import type { RevisionInfo } from '../store/revision.ts';

export interface Trailer {
  readonly name: string;
  readonly value: string;
}

/** The change may remove most limits (removal-guard.ts). */
export const allowRemovalTrailer: Trailer = { name: 'Allow-Removal', value: 'yes' };
/** Every worker gets the revision at once, whatever rollout is configured. */
export const nowTrailer: Trailer = { name: 'Rollout', value: 'now' };
/** It goes through its steps, also when it goes back to rules that were in force before. */
export const stepsTrailer: Trailer = { name: 'Rollout', value: 'steps' };
/** The revision replaces one with a running rollout. */
export const supersedeTrailer: Trailer = { name: 'Rollout', value: 'supersede' };

export function saysTrailer(
  { message }: Pick<RevisionInfo, 'message'>,
  { name, value }: Trailer,
): boolean {
  return new RegExp(`^${name}:[ \\t]*${value}[ \\t]*$`, 'im').test(message ?? '');
}

/** The message with that line. */
export function withTrailer(message: string, trailer: Trailer): string {
  if (saysTrailer({ message }, trailer)) return message;
  const isAfterTrailer = /\n\n[\w-]+: \S+$/.test(message);
  return `${message}${isAfterTrailer ? '\n' : '\n\n'}${toLine(trailer)}`;
}

export function toLine({ name, value }: Trailer): string {
  return `${name}: ${value}`;
}
