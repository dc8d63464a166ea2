// The static table (RFC 7541, appendix A), and the shape of a table entry. dynamic-table.ts has the
// dynamic entries.
import type { HeaderField } from './header-field.ts';

export interface TableEntry extends HeaderField {
  /** The field's size in a table and in a header list (section 4.1). */
  readonly size: number;
  /** True when the value was valid but not decoded: `value` is then ''. */
  readonly isUnread: boolean;
}

/**
 * Makes every field that a decoder returns. Not frozen: frozen objects have another hidden class, so readers would have
 * to handle two.
 */
export function createEntry(name: string, value: string): TableEntry {
  return toEntry(name, value, value.length, false);
}

/** An entry for a field whose value is not decoded. */
export function createUnreadEntry(name: string, valueLength: number): TableEntry {
  return toEntry(name, '', valueLength, true);
}

function toEntry(name: string, value: string, valueLength: number, isUnread: boolean): TableEntry {
  return { name, value, size: name.length + valueLength + 32, meaning: 0, isUnread };
}

/** Each name with its values, in the order of their indices. */
const fieldsInOrder: readonly (readonly [name: string, ...values: string[]])[] = [
  [':authority', ''],
  [':method', 'GET', 'POST'],
  [':path', '/', '/index.html'],
  [':scheme', 'http', 'https'],
  [':status', '200', '204', '206', '304', '400', '404', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
];

/** These names have no value. */
const namesInOrder =
  'accept-language accept-ranges accept access-control-allow-origin age allow authorization ' +
  'cache-control content-disposition content-encoding content-language content-length ' +
  'content-location content-range content-type cookie date etag expect expires from host if-match ' +
  'if-modified-since if-none-match if-range if-unmodified-since last-modified link location ' +
  'max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after server ' +
  'set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate';

/** The entry of index 1 is first: there is no index 0. */
export const staticTable: readonly TableEntry[] = [
  ...fieldsInOrder.flatMap(([name, ...values]) => values.map((value) => createEntry(name, value))),
  ...namesInOrder.split(' ').map((name) => createEntry(name, '')),
];
