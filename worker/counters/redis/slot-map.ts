// Reads a cluster node's map of slots.
import type { TcpAddress } from './address.ts';
import { slotCount } from './key-slot.ts';

export interface SlotMap {
  /** The master of a slot; undefined where there is none. Equal addresses are one object. */
  readonly owners: readonly (TcpAddress | undefined)[];
  readonly masters: readonly TcpAddress[];
  /** Every node, replicas too. */
  readonly nodes: readonly TcpAddress[];
}

/**
 * Parses the reply to CLUSTER SLOTS; undefined when it is invalid. `askedHost` replaces a host that the
 * node does not know of itself.
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

function parseNode(node: unknown, askedHost: string): TcpAddress | undefined {
  if (!Array.isArray(node)) return undefined;
  const [host, port] = [node[0] || askedHost, Number(node[1])];
  const isAddress = typeof host === 'string' && Number.isInteger(port) && port > 0 && port < 65_536;
  return isAddress ? { kind: 'tcp', host, port } : undefined;
}
