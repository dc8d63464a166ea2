// HTTP/2 frames as bytes, for tests that write the protocol by hand, correctly or not. Separate from the server's own
// codec, so that a mistake is not on both sides. Header blocks consist only of literals; nothing here reads them.

/** RFC 9113 section 6, and a type without a meaning. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
  unknown: 0xbe,
} as const;

export const flags = {
  none: 0,
  endStream: 0x1,
  ack: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const;

/** RFC 9113 section 7. */
export const errorCodes = {
  noError: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export type HeaderField = readonly [name: string, value: string];

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

const none: Buffer = Buffer.alloc(0);

export function toFrame(type: number, flagBits: number, streamId: number, payload = none): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flagBits;
  head.writeUInt32BE(streamId >>> 0, 5);
  return Buffer.concat([head, payload]);
}

export function toSettings(settings: Readonly<Record<number, number>> = {}): Buffer {
  const payload = Object.entries(settings).map(([id, value]) => {
    const entry = Buffer.alloc(6);
    entry.writeUInt16BE(Number(id), 0);
    entry.writeUInt32BE(value, 2);
    return entry;
  });
  return toFrame(frameTypes.settings, flags.none, 0, Buffer.concat(payload));
}

export const settingsAck = toFrame(frameTypes.settings, flags.ack, 0);

export function toHeaders(
  streamId: number,
  fields: readonly HeaderField[],
  flagBits: number = flags.endHeaders,
): Buffer {
  return toFrame(frameTypes.headers, flagBits, streamId, toHeaderBlock(fields));
}

export function toData(streamId: number, payload: Buffer, flagBits: number = flags.none): Buffer {
  return toFrame(frameTypes.data, flagBits, streamId, payload);
}

export function toReset(streamId: number, code: number): Buffer {
  return toFrame(frameTypes.rstStream, flags.none, streamId, toUInt32(code));
}

export function toWindowUpdate(streamId: number, increment: number): Buffer {
  return toFrame(frameTypes.windowUpdate, flags.none, streamId, toUInt32(increment));
}

export function toPing(flagBits: number = flags.none, text = 'pingpong'): Buffer {
  return toFrame(frameTypes.ping, flagBits, 0, Buffer.from(text));
}

/** Weight 16, not exclusive. */
export function toPriority(streamId: number, dependsOn: number): Buffer {
  const payload = Buffer.concat([toUInt32(dependsOn), Buffer.of(15)]);
  return toFrame(frameTypes.priority, flags.none, streamId, payload);
}

export function toUInt32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** RFC 7541 6.2.2: literals without indexing and without Huffman coding. */
export function toHeaderBlock(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.of(0), toHpackString(name), toHpackString(value)]),
  );
}

export function toHpackString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([toHpackInteger(bytes.length, 7, 0), bytes]);
}

/** RFC 7541 5.1; `bits` above the prefix are kept. */
export function toHpackInteger(value: number, prefixLength: number, bits: number): Buffer {
  const limit = 2 ** prefixLength - 1;
  if (value < limit) return Buffer.of(bits | value);
  const bytes = [bits | limit];
  let rest = value - limit;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** The headers of a gRPC request as clients send them. */
export function grpcRequest(path: string, ...more: readonly HeaderField[]): HeaderField[] {
  return [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
    ...more,
  ];
}

/** A gRPC message as contained in DATA frames. */
export function toMessage(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0), toUInt32(bytes.length), bytes]);
}

/** A whole unary call in two frames; the message must fit into one. */
export function toCall(streamId: number, path: string, message: Buffer): Buffer {
  return Buffer.concat([
    toHeaders(streamId, grpcRequest(path)),
    toData(streamId, toMessage(message), flags.endStream),
  ]);
}

/** The complete frames at the start of `bytes`, and the remaining bytes. */
export function splitFrames(bytes: Buffer): { readonly frames: Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let position = 0;
  while (position + 9 <= bytes.length) {
    const end = position + 9 + bytes.readUIntBE(position, 3);
    if (end > bytes.length) break;
    frames.push({
      type: bytes.readUInt8(position + 3),
      flags: bytes.readUInt8(position + 4),
      streamId: bytes.readUInt32BE(position + 5) % 2 ** 31,
      // A copy, so that a small frame does not keep the whole chunk in memory.
      payload: Buffer.from(bytes.subarray(position + 9, end)),
    });
    position = end;
  }
  return { frames, rest: bytes.subarray(position) };
}
