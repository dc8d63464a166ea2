// Writes the headers of the generator's HTTP/2 frames (RFC 9113, section 4.1) directly into the output buffer. The
// numbers of types and flags are those of the tests' own peer.

export const frameHeaderLength = 9;
/** The default on both sides, which we neither raise nor exceed. */
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
