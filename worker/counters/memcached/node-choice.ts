// Chooses the node of a counter. Workers with the same list agree, the reference included (behaviour:
// memory-cache-nodes).
import { crc32 } from 'node:zlib';

export interface NodeChoice {
  /** Index in the list of nodes. */
  readonly node: number;
  /** Index among the connections to that node: a key always uses the same one. */
  readonly connection: number;
}

/** CRC-32 (IEEE) of the key modulo the number of nodes. Both counts are above 0. */
export function chooseNode(key: string, nodeCount: number, connectionCount: number): NodeChoice {
  const hash = crc32(key);
  return { node: hash % nodeCount, connection: Math.floor(hash / nodeCount) % connectionCount };
}
