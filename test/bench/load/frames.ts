// How the generator writes the heads of HTTP/2 frames (RFC 9113, section 4.1): in place, into what is
// about to be sent. The numbers of types and flags are those that the tests' own peer uses.

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
