// Reads a request's head from the fields of a header block, by the rules of RFC 9113 section 8 for requests and gRPC's
// for its own values. The call answers.
import { type GrpcErrorStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import { parseGrpcTimeout } from './grpc-timeout.ts';
import type { HeaderField } from './hpack/header-field.ts';
import { maxHeaderListBytes } from './limits.ts';

export interface RequestHead {
  readonly path: string;
  /** Set if no method can answer the request, with the reason. */
  readonly refusal: Refusal | undefined;
  /** '' without the header. */
  readonly encoding: string;
  /** Milliseconds; undefined without the header. */
  readonly timeoutMs: number | undefined;
  readonly contentLength: number | undefined;
  readonly fields: readonly HeaderField[];
  /** Size of the fields, computed as in RFC 9113 10.5.1. */
  readonly listBytes: number;
}

export type Refusal =
  | { readonly kind: 'http'; readonly status: number; readonly text: string }
  | { readonly kind: 'grpc'; readonly status: GrpcErrorStatus; readonly text: string };

/** A request that violates a rule of HTTP/2, which the text names. */
export class MalformedRequest extends Error {}

/** The meanings of fields: each is determined once per table entry, not per use. */
const meanings = {
  unseen: 0,
  plain: 1,
  method: 2,
  scheme: 3,
  path: 4,
  authority: 5,
  contentType: 6,
  timeout: 7,
  encoding: 8,
  contentLength: 9,
  host: 10,
  malformed: 11,
} as const;

const meaningOfName: ReadonlyMap<string, number> = new Map([
  [':method', meanings.method],
  [':scheme', meanings.scheme],
  [':path', meanings.path],
  [':authority', meanings.authority],
  ['content-type', meanings.contentType],
  ['grpc-timeout', meanings.timeout],
  ['grpc-encoding', meanings.encoding],
  ['content-length', meanings.contentLength],
  ['host', meanings.host],
  // Connection-specific fields are forbidden in HTTP/2 (section 8.2.2).
  ['connection', meanings.malformed],
  ['proxy-connection', meanings.malformed],
  ['keep-alive', meanings.malformed],
  ['transfer-encoding', meanings.malformed],
  ['upgrade', meanings.malformed],
]);

/** Whether the value of a header is used, or can make a request malformed. */
export function isReadHeader(name: string): boolean {
  return meaningOfName.has(name) || name === 'te' || !namePattern.test(name);
}

const longestShownMethod = 20;

const grpcContentType = /^application\/grpc(?:$|[+;])/;
/** Lower-case tokens (section 8.2.1). */
const namePattern = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const valuePattern = /^(?![ \t])[^\0\r\n]*(?<![ \t])$/;

/** The values that a head is made from, as far as they were read. */
class HeadValues {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  authority: string | undefined;
  host: string | undefined;
  contentType = '';
  encoding = '';
  timeoutMs: number | undefined;
  /** A grpc-timeout that cannot be parsed. */
  badTimeout: string | undefined;
  contentLength: number | undefined;
}

/** Throws MalformedRequest. */
export function readRequestHead(fields: readonly HeaderField[], listBytes: number): RequestHead {
  const values = new HeadValues();
  let pseudoFieldsOver = false;
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index] as HeaderField;
    const meaning = field.meaning === meanings.unseen ? findMeaning(field) : field.meaning;
    if (meaning >= meanings.method && meaning <= meanings.authority) {
      if (pseudoFieldsOver) throw new MalformedRequest(`${field.name} after other fields`);
    } else pseudoFieldsOver = true;
    switch (meaning) {
      case meanings.plain:
        break;
      case meanings.method:
        values.method = once(values.method, field);
        break;
      case meanings.scheme:
        values.scheme = once(values.scheme, field);
        break;
      case meanings.path:
        values.path = once(values.path, field);
        break;
      case meanings.authority:
        values.authority = once(values.authority, field);
        break;
      case meanings.host:
        values.host = field.value;
        break;
      case meanings.contentType:
        values.contentType = field.value;
        break;
      case meanings.encoding:
        values.encoding = field.value;
        break;
      case meanings.timeout:
        values.timeoutMs = parseGrpcTimeout(field.value);
        if (values.timeoutMs === undefined) values.badTimeout = field.value;
        break;
      case meanings.contentLength:
        values.contentLength = readContentLength(values.contentLength, field);
        break;
      default:
        throw new MalformedRequest(`field ${JSON.stringify(field.name)} is not allowed`);
    }
  }
  const { method, scheme, path, authority, host } = values;
  if (method === undefined || scheme === undefined || path === undefined || path === '') {
    throw new MalformedRequest('one of :method, :scheme and :path is missing');
  }
  if (host !== undefined && authority !== undefined && host !== authority) {
    throw new MalformedRequest('host and :authority differ');
  }
  const { contentType, encoding, timeoutMs, badTimeout, contentLength } = values;
  const refusal = findRefusal(method, contentType, badTimeout);
  return { path, refusal, encoding, timeoutMs, contentLength, fields, listBytes };
}

/** The head of a call whose answer is no longer awaited. */
export const noHead: RequestHead = {
  path: '',
  refusal: undefined,
  encoding: '',
  timeoutMs: undefined,
  contentLength: undefined,
  fields: [],
  listBytes: 0,
};

/** A request whose header list is too large; its content is unknown. */
export const oversizedHead: RequestHead = {
  ...noHead,
  refusal: {
    kind: 'http',
    status: 431,
    text: `the header list is larger than ${maxHeaderListBytes}`,
  },
};

function findRefusal(
  method: string,
  contentType: string,
  badTimeout: string | undefined,
): Refusal | undefined {
  if (method !== 'POST') {
    const text = `this port speaks gRPC: POST is allowed, not ${method.slice(0, longestShownMethod)}`;
    return { kind: 'http', status: 405, text };
  }
  if (!grpcContentType.test(contentType)) {
    const text = 'this port speaks gRPC: content-type application/grpc';
    return { kind: 'http', status: 415, text };
  }
  if (badTimeout === undefined) return undefined;
  const text = `malformed grpc-timeout: ${JSON.stringify(badTimeout)}`;
  return { kind: 'grpc', status: grpcStatus.internal, text };
}

/** Whether the fields are valid trailers (RFC 9113 section 8.1). */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  return fields.every(
    (field) => !field.name.startsWith(':') && findMeaning(field) !== meanings.malformed,
  );
}

function findMeaning(field: HeaderField): number {
  const { name, value } = field;
  let meaning = meaningOfName.get(name);
  if (meaning === undefined) {
    const isAllowed = namePattern.test(name) && (name !== 'te' || value === 'trailers');
    meaning = isAllowed ? meanings.plain : meanings.malformed;
  }
  if (!valuePattern.test(value)) meaning = meanings.malformed;
  field.meaning = meaning;
  return meaning;
}

function once(before: string | undefined, { name, value }: HeaderField): string {
  if (before !== undefined) throw new MalformedRequest(`${name} twice`);
  return value;
}

function readContentLength(before: number | undefined, { value }: HeaderField): number {
  const length = /^\d{1,15}$/.test(value) ? Number(value) : undefined;
  if (length === undefined || (before !== undefined && before !== length)) {
    throw new MalformedRequest('content-length is not one number');
  }
  return length;
}
