// The gRPC messages of the requests: one template, in which only the digits of the descriptors' values change.

const valueDigits = 9;
const grpcHeaderLength = 5;

export interface RequestTemplate {
  /** A framed message; all requests have this length. */
  readonly message: Buffer;
  /** Where the digits of each value begin in the message. */
  readonly digits: readonly number[];
}

/** Descriptors with one entry each; the value of descriptor J for key K is `dJ-K`, so that all differ. */
export function createRequestTemplate(domain: string, keys: readonly string[]): RequestTemplate {
  let body = field(1, Buffer.from(domain));
  const digits: number[] = [];
  for (const [index, key] of keys.entries()) {
    const value = `d${index}-${'0'.repeat(valueDigits)}`;
    const entry = Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))]);
    body = Buffer.concat([body, field(2, field(1, entry))]);
    digits.push(grpcHeaderLength + body.length - valueDigits);
  }
  const header = Buffer.alloc(grpcHeaderLength);
  header.writeUInt32BE(body.length, 1);
  return { message: Buffer.concat([header, body]), digits };
}

/** Writes a key's number at the position of a value's digits. */
export function writeDigits(target: Buffer, start: number, key: number): void {
  let rest = key;
  for (let offset = start + valueDigits - 1; offset >= start; offset--) {
    const next = Math.floor(rest / 10);
    target[offset] = 0x30 + rest - next * 10;
    rest = next;
  }
}

function field(number: number, content: Buffer): Buffer {
  if (content.length > 127) throw new Error('too long for a length of one byte');
  return Buffer.concat([Buffer.from([(number << 3) | 2, content.length]), content]);
}
