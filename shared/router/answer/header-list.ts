// The headers of an answer: what the router adds for its body, what the method has set, and what every answer has.

/** `own` goes before what was set; what was set goes before the three last of those that every answer has. Throws
 * where another length was set than the body has. */
export function toHeaderList(
  own: readonly string[],
  set: Headers | undefined,
  requestId: string,
): string[] {
  const always = [
    'x-request-id',
    requestId,
    'x-content-type-options',
    'nosniff',
    'cache-control',
    'no-store',
  ];
  if (set === undefined) return own.concat(always);
  const list = [...own];
  for (const [name, value] of set) {
    const at = own.indexOf(name);
    if (at < 0) list.push(name, value);
    else if (name === 'content-length') refuseOtherLength(value, own[at + 1] ?? '');
  }
  for (let at = 0; at < always.length; at += 2) {
    if (!set.has(always[at] ?? '')) list.push(...always.slice(at, at + 2));
  }
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
