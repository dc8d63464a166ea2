// HTTP/2 frames as bytes (RFC 9113 section 4): numbers of types, flags, errors and settings, and functions that write
// frames. The session interprets them.

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

/** RFC 9113 section 7. */
export const errorCodes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;
export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes];

/** RFC 9113 section 6.5.2. */
export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const frameHeaderBytes = 9;
/** Initial window of a connection and of a stream, until SETTINGS or WINDOW_UPDATE change it. */
export const defaultWindowBytes = 65_535;
export const defaultMaxFrameBytes = 16_384;
export const defaultHeaderTableBytes = 4_096;
export const largestMaxFrameBytes = 0xff_ffff;
export const largestWindowBytes = 0x7fff_ffff;
export const largestStreamId = 0x7fff_ffff;

/** The bytes that a client sends before its first frame (RFC 9113 section 3.4). */
export const clientPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Writes the nine bytes before a payload; returns the position after them. */
export function writeFrameHeader(
  bytes: Uint8Array,
  position: number,
  length: number,
  type: number,
  frameFlags: number,
  streamId: number,
): number {
  bytes[position] = length >>> 16;
  bytes[position + 1] = length >>> 8;
  bytes[position + 2] = length;
  bytes[position + 3] = type;
  bytes[position + 4] = frameFlags;
  return writeUint32(bytes, position + 5, streamId);
}

export function writeUint32(bytes: Uint8Array, position: number, value: number): number {
  bytes[position] = value >>> 24;
  bytes[position + 1] = value >>> 16;
  bytes[position + 2] = value >>> 8;
  bytes[position + 3] = value;
  return position + 4;
}

export function readUint32(bytes: Uint8Array, position: number): number {
  return (
    (((bytes[position] as number) << 24) |
      ((bytes[position + 1] as number) << 16) |
      ((bytes[position + 2] as number) << 8) |
      (bytes[position + 3] as number)) >>>
    0
  );
}
