// The headers of an answer: what the router adds for its body, what the method has set, and what every answer has.

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

/** `own` goes before what was set; what was set goes before the three last of those that every answer has. Throws
 * where another length was set than the body has. */
export function toHeaderList(
  own: readonly string[],
  set: Headers | undefined,
  requestId: string,
): string[] {
  const list = [...own];
  const names = own.filter((_, at) => at % 2 === 0);
  for (const [name, value] of set ?? []) {
    if (!names.includes(name)) list.push(name, value);
    else if (name === 'content-length') refuseOtherLength(value, own[own.indexOf(name) + 1] ?? '');
  }
  if (set?.has('x-request-id') !== true) list.push('x-request-id', requestId);
  if (set?.has('x-content-type-options') !== true) list.push('x-content-type-options', 'nosniff');
  if (set?.has('cache-control') !== true) list.push('cache-control', 'no-store');
  return list;
}

function refuseOtherLength(set: string, length: string): void {
  if (set === length) return;
  throw new TypeError(`the header content-length is ${set}, and the body has ${length} bytes`);
}

/** Of an answer without a body; only one to HEAD, and 304, can have a length. */
export function toBodilessHeaders(
  set: Headers | undefined,
  { id, method }: { readonly id: string; readonly method: string },
  status: number,
): string[] {
  const length = set?.get('content-length') ?? '0';
  if (method !== 'HEAD' && status !== 304) refuseOtherLength(length, '0');
  return toHeaderList([], set, id);
}
