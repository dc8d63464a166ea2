// The labels of a worker's states on all pages.
import type { WorkerJson } from '../../admin/fleet-json.ts';
import type { Tone } from './parts.ts';

export const workerStates: Readonly<Record<WorkerJson['state'], readonly [Tone, string]>> = {
  refused: ['bad', 'refused'],
  pending: ['wait', 'pending'],
  on_trial: ['wait', 'on trial'],
  in_force: ['good', 'in force'],
};
