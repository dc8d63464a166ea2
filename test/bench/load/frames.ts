// HTTP/2 frames as bytes (RFC 9113, sections 4.1 and 6).

export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const frameFlags = {
  endStream: 1,
  ack: 1,
  endHeaders: 4,
  padded: 8,
  priority: 0x20,
} as const;
export const settings = { tableSize: 1, enablePush: 2, maxStreams: 3, initialWindow: 4 } as const;

export const frameHeaderLength = 9;
/** Both sides' default, which we neither raise nor exceed. */
export const maxFrameLength = 16_384;
export const defaultWindow = 65_535;

export function writeFrameHeader(
  target: Buffer,
  start: number,
  length: number,
  type: number,
  flags: number,
  id: number,
): void {
  target[start] = length >>> 16;
  target[start + 1] = length >>> 8;
  target[start + 2] = length;
  target[start + 3] = type;
  target[start + 4] = flags;
  writeStreamId(target, start + 5, id);
}

export function writeStreamId(target: Buffer, start: number, id: number): void {
  target[start] = id >>> 24;
  target[start + 1] = id >>> 16;
  target[start + 2] = id >>> 8;
  target[start + 3] = id;
}
