// Ids that come again with a seed: which workers a rollout chooses follows from its id, so that a walk cannot be
// repeated with those that the system draws.
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { Random } from '../../support/random.ts';

/** For the whole process, until the returned function is called. */
export function useSeededIds(random: Random): () => void {
  const { randomUUID } = crypto;
  crypto.randomUUID = () => {
    const hex = random.bytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
  syncBuiltinESMExports();
  return () => {
    crypto.randomUUID = randomUUID;
    syncBuiltinESMExports();
  };
}
