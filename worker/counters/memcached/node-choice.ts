// Which node a counter lives on. Workers that are given the same list agree, the reference among them
// (behaviour: memory-cache-nodes).
import { crc32 } from 'node:zlib';

export interface NodeChoice {
  /** The place in the list of nodes. */
  readonly node: number;
  /** The place among the connections to that node: one key always takes the same one. */
  readonly connection: number;
}

/** CRC-32 (IEEE) of the key modulo the number of nodes. Both counts are above 0. */
export function chooseNode(key: string, nodeCount: number, connectionCount: number): NodeChoice {
  const hash = crc32(key);
  return { node: hash % nodeCount, connection: Math.floor(hash / nodeCount) % connectionCount };
}
