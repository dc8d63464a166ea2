import test from 'ava';
import {
  createDecoder,
  decode,
  drainTable,
  type Pair,
  sizeOf,
} from '../../../../test/support/hpack-blocks.ts';
import { testScenarios } from '../../../../test/support/scenarios.ts';
import { HpackError } from './decoder.ts';

/** The size of each scenario's table, and the blocks so far. */
const connections = new Map<string, { tableBytes: number; blocks: string[] }>();

const toLines = (pairs: readonly Pair[]) => pairs.map(([name, value]) => `${name}: ${value}`);

const file = new URL('decoder-examples.txt', import.meta.url);
testScenarios(test, file, ([command, ...words], { folder }) => {
  const connection = connections.get(folder) ?? { tableBytes: 4096, blocks: [] };
  connections.set(folder, connection);
  if (command === 'table') {
    connection.tableBytes = Number(words[0]);
    return { out: '' };
  }
  connection.blocks.push(words.join(''));
  const decoder = createDecoder({ tableBytes: connection.tableBytes });
  // The peer announces that it uses a table smaller than the protocol's.
  if (connection.tableBytes === 256) decode(decoder, '3fe1 01');
  const decoded = connection.blocks.map((block) => decode(decoder, block)).at(-1) ?? [];
  const table = drainTable(decoder);
  return {
    out: [...toLines(decoded), `table of ${sizeOf(table)} octets`, ...toLines(table)].join('\n'),
  };
});

test('example C.1, integers in and beyond their prefix, as accepted or refused sizes', (t) => {
  t.deepEqual(decode(createDecoder({ tableBytes: 10 }), '2a'), []);
  t.throws(() => decode(createDecoder({ tableBytes: 9 }), '2a'), {
    instanceOf: HpackError,
    message: 'table size update to 10, above 9',
  });
  t.deepEqual(decode(createDecoder({ tableBytes: 1337 }), '3f 9a 0a'), []);
  t.throws(() => decode(createDecoder({ tableBytes: 1336 }), '3f 9a 0a'), {
    instanceOf: HpackError,
    message: 'table size update to 1337, above 1336',
  });
});
