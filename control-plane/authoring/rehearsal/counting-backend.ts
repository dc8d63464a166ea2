// Properties of the stores in which workers count hits (BACKEND_TYPE) that matter for rules.
import { storeKindNames, storeKinds } from '../../../worker/counters/store-kinds.ts';

/** The values of BACKEND_TYPE. */
export const countingBackends: readonly string[] = Object.keys(storeKindNames);

/** Whether the store supports limits of every algorithm, not only fixed windows; true for an unknown value. */
export function countsAllAlgorithms(backend: string): boolean {
  const kind = storeKindNames[backend];
  return kind === undefined || storeKinds[kind].limiters;
}

/** Whether the store rejects some counter keys made from values of requests. */
export function acceptsShortKeysOnly(backend: string): boolean {
  const kind = storeKindNames[backend];
  return kind !== undefined && storeKinds[kind].acceptsShortKeysOnly;
}
