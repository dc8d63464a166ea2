// A descriptor's entries with their hash, as a port creates them.
import type { Entry } from '../../shared/rules/rule.ts';
import { hashEntries } from '../../worker/decision/hit.ts';
import type { RequestDescriptor } from '../../worker/decision/message.ts';

export function hashed(entries: readonly Entry[]): Pick<RequestDescriptor, 'entries' | 'hash'> {
  return { entries, hash: hashEntries(entries) };
}
