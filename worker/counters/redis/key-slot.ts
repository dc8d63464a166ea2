// Finds the slot of a cluster that a key belongs to: CRC-16 of the key, or of the part between its first braces,
// modulo the number of slots, as every cluster node computes it.

export const slotCount = 16_384;

const table = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

export function toSlot(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (let index = 0; index < hashed.length; index++) {
    const code = hashed.charCodeAt(index);
    if (code > 127) return toSlotOfBytes(Buffer.from(hashed));
    crc = addByte(crc, code);
  }
  return crc % slotCount;
}

function toSlotOfBytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = addByte(crc, byte);
  return crc % slotCount;
}

function addByte(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] as number);
}
