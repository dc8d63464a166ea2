// Hints that join two items with the same key into one: for items of one document, and of several.

import { leastListed, mostListed } from '../rule-keys.ts';
import { listOf } from '../yaml/map-reader.ts';

export interface JoinedItem {
  readonly limits: readonly JoinedLimit[];
  readonly hasDescriptors: boolean;
}

export interface JoinedLimit {
  /** The limit as it is written in one line. */
  readonly text: string;
  /** Limits of one list must differ in their windows; undefined if a limit cannot be in a list. */
  readonly window: string | undefined;
}

export function describeJoined(items: readonly [JoinedItem, JoinedItem]): string {
  const limits = items.flatMap((item) => item.limits);
  const canBeListed = isList(limits);
  const withDescriptors = items.filter(({ hasDescriptors }) => hasDescriptors);
  const parts: string[] = [];
  if (withDescriptors.length === 1) parts.push('the descriptors');
  if (withDescriptors.length === 2) parts.push('the descriptors of both');
  if (limits.length === 1) parts.push('the rate_limit');
  if (canBeListed) parts.push(`rate_limits: [${limits.map(({ text }) => text).join(', ')}]`);
  const isOneEnough = parts.length === 0 || (limits.length > 1 && !canBeListed);
  return isOneEnough ? 'keep one of them' : `keep one item, with ${listOf(parts)}`;
}

/** Whether each limit has a window of its own. */
function isList(limits: readonly JoinedLimit[]): boolean {
  const windows = new Set(limits.map(({ window }) => window));
  const isInRange = limits.length >= leastListed && limits.length <= mostListed;
  return isInRange && windows.size === limits.length && !windows.has(undefined);
}
