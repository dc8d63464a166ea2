// Where workers may count hits (BACKEND_TYPE), as far as rules depend on it.
import { storeKindNames, storeKinds } from '../../../worker/counters/store-kinds.ts';

/** The words of BACKEND_TYPE. */
export const countingBackends: readonly string[] = Object.keys(storeKindNames);

/** Whether limits of every algorithm are counted there, not only fixed windows; true of a word that is none. */
export function countsAllAlgorithms(backend: string): boolean {
  const kind = storeKindNames[backend];
  return kind === undefined || storeKinds[kind].limiters;
}

/** Whether a value of a request can make a counter key that the store does not take. */
export function takesShortKeysOnly(backend: string): boolean {
  const kind = storeKindNames[backend];
  return kind !== undefined && storeKinds[kind].takesShortKeysOnly;
}
