import test from 'ava';
import { chooseNode } from './memcached-nodes.ts';

test('the node is CRC-32 (IEEE) of the key modulo the number of nodes', (t) => {
  // The check value of this CRC.
  const hash = 0xcbf4_3926;
  for (const count of [1, 2, 3, 7, 100]) t.is(chooseNode('123456789', count, 2).node, hash % count);
});

test('the bytes of a key count, not its characters', (t) => {
  // "ä" is c3 a4; its CRC-32 is 0x70b5f183 by an independent implementation.
  t.is(chooseNode('ä', 1_000_000_007, 1).node, 0x70b5_f183 % 1_000_000_007);
});

test('the keys of a node are distributed over its connections', (t) => {
  const used = new Set<number>();
  for (let index = 0; index < 100; index++) used.add(chooseNode(`key_${index}`, 2, 3).connection);
  t.deepEqual([...used].sort(), [0, 1, 2]);
});
