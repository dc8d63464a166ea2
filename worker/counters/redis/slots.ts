// The slots of a cluster: which one a key belongs to, and which node serves it.
import type { TcpAddress } from './address.ts';

export const slotCount = 16_384;

const table = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** CRC-16 of the key, or of the part between its first braces, modulo the number of slots, as every cluster node
 * computes it. */
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

export interface SlotMap {
  /** The master of each slot; undefined if absent. Equal addresses are one object. */
  readonly owners: readonly (TcpAddress | undefined)[];
  readonly masters: readonly TcpAddress[];
  /** Every node, including replicas. */
  readonly nodes: readonly TcpAddress[];
}

/**
 * Parses the reply to CLUSTER SLOTS; undefined when it is invalid. `askedHost` replaces the host of a node that reports
 * none.
 */
export function parseSlotMap(reply: unknown, askedHost: string): SlotMap | undefined {
  if (!Array.isArray(reply)) return undefined;
  const owners: (TcpAddress | undefined)[] = new Array(slotCount).fill(undefined);
  const nodes = new Map<string, TcpAddress>();
  const masters = new Set<TcpAddress>();
  for (const range of reply) {
    if (!Array.isArray(range)) return undefined;
    const [first, last] = [Number(range[0]), Number(range[1])];
    const isRange = Number.isInteger(first) && first >= 0 && first <= last && last < slotCount;
    const addresses = range.slice(2).map((node) => parseNode(node, askedHost));
    const [master] = addresses;
    if (!isRange || master === undefined || addresses.includes(undefined)) return undefined;
    for (const address of addresses) {
      const text = `${address?.host}:${address?.port}`;
      if (address && !nodes.has(text)) nodes.set(text, address);
    }
    const owner = nodes.get(`${master.host}:${master.port}`);
    if (owner) masters.add(owner);
    owners.fill(owner, first, last + 1);
  }
  return { owners, masters: [...masters], nodes: [...nodes.values()] };
}

/** A node without an announced name reports none, or a question mark: its host is then the one that was asked. */
export function isKnownHost(host: unknown): boolean {
  return host !== null && host !== undefined && host !== '' && host !== '?';
}

function parseNode(node: unknown, askedHost: string): TcpAddress | undefined {
  if (!Array.isArray(node)) return undefined;
  const [host, port] = [isKnownHost(node[0]) ? node[0] : askedHost, Number(node[1])];
  const isAddress = typeof host === 'string' && Number.isInteger(port) && port > 0 && port < 65_536;
  return isAddress ? { kind: 'tcp', host, port } : undefined;
}
