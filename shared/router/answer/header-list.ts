// The headers of an answer: what the router adds for its body, what the method has set, and what every answer has.
import type { HeaderList } from '../request/request.ts';

/** Of a body that is there as a whole. */
export function toWholeHeaders(
  type: string,
  bytes: number,
  set: Headers | undefined,
  requestId: string,
): string[] {
  const length = String(bytes);
  if (set !== undefined) {
    return toHeaderList(['content-type', type, 'content-length', length], set, requestId);
  }
  // One literal: the answer that most methods give.
  return [
    'content-type',
    type,
    'content-length',
    length,
    'x-request-id',
    requestId,
    'x-content-type-options',
    'nosniff',
    'cache-control',
    'no-store',
  ];
}

/** `own` goes before what was set; what was set goes before the two last of those that every answer has. */
export function toHeaderList(
  own: readonly string[],
  set: Headers | undefined,
  requestId: string,
): string[] {
  const list = [...own, 'x-request-id', requestId];
  const names = list.filter((_, at) => at % 2 === 0);
  for (const [name, value] of set ?? []) if (!names.includes(name)) list.push(name, value);
  if (set?.has('x-content-type-options') !== true) list.push('x-content-type-options', 'nosniff');
  if (set?.has('cache-control') !== true) list.push('cache-control', 'no-store');
  return list;
}

/** With headers that replace those of the same name; `vary` is added to. */
export function withHeaders(list: HeaderList, more: HeaderList): HeaderList {
  if (more.length === 0) return list;
  const replaced = more.filter((name, at) => at % 2 === 0 && name !== 'vary');
  const kept = list.flatMap((name, at) =>
    at % 2 === 0 && !replaced.includes(name) ? [name, list[at + 1] ?? ''] : [],
  );
  return [...kept, ...more];
}
