import test from 'ava';
import { HpackError } from './decoder.ts';
import { createDecoder, decode, drainTable, type Pair, sizeOf } from './decoder-fixture.ts';

interface Example {
  readonly hex: string;
  readonly fields: readonly Pair[];
  readonly table: readonly Pair[];
  readonly tableSize: number;
}

const getRequest: readonly Pair[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const secureRequest: readonly Pair[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
];
const requests: readonly Omit<Example, 'hex'>[] = [
  { fields: getRequest, table: [[':authority', 'www.example.com']], tableSize: 57 },
  {
    fields: [...getRequest, ['cache-control', 'no-cache']],
    table: [
      ['cache-control', 'no-cache'],
      [':authority', 'www.example.com'],
    ],
    tableSize: 110,
  },
  {
    fields: secureRequest,
    table: [
      ['custom-key', 'custom-value'],
      ['cache-control', 'no-cache'],
      [':authority', 'www.example.com'],
    ],
    tableSize: 164,
  },
];
const location: Pair = ['location', 'https://www.example.com'];
const cookie: Pair = ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'];
const isPrivate: Pair = ['cache-control', 'private'];
const earlier: Pair = ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'];
const later: Pair = ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'];
const responses: readonly Omit<Example, 'hex'>[] = [
  {
    fields: [[':status', '302'], isPrivate, earlier, location],
    table: [location, earlier, isPrivate, [':status', '302']],
    tableSize: 222,
  },
  {
    fields: [[':status', '307'], isPrivate, earlier, location],
    table: [[':status', '307'], location, earlier, isPrivate],
    tableSize: 222,
  },
  {
    fields: [[':status', '200'], isPrivate, later, location, ['content-encoding', 'gzip'], cookie],
    table: [cookie, ['content-encoding', 'gzip'], later],
    tableSize: 215,
  },
];

/** Of RFC 7541, appendix C: blocks that follow each other on one connection. */
const examples: Record<string, { tableBytes?: number; blocks: readonly Example[] }> = {
  'C.2.1, a literal with indexing': {
    blocks: [
      {
        hex: '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572',
        fields: [['custom-key', 'custom-header']],
        table: [['custom-key', 'custom-header']],
        tableSize: 55,
      },
    ],
  },
  'C.2.2, a literal without indexing': {
    blocks: [
      {
        hex: '040c 2f73 616d 706c 652f 7061 7468',
        fields: [[':path', '/sample/path']],
        table: [],
        tableSize: 0,
      },
    ],
  },
  'C.2.3, a literal that is never indexed': {
    blocks: [
      {
        hex: '1008 7061 7373 776f 7264 0673 6563 7265 74',
        fields: [['password', 'secret']],
        table: [],
        tableSize: 0,
      },
    ],
  },
  'C.2.4, an indexed field': {
    blocks: [{ hex: '82', fields: [[':method', 'GET']], table: [], tableSize: 0 }],
  },
  'C.3, requests without Huffman code': {
    blocks: withHex(requests, [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ]),
  },
  'C.4, requests with Huffman code': {
    blocks: withHex(requests, [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ]),
  },
  'C.5, responses without Huffman code': {
    tableBytes: 256,
    blocks: withHex(responses, [
      `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
       2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
       6c65 2e63 6f6d`,
      '4803 3330 37c1 c0bf',
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
       54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
       5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
       3d31`,
    ]),
  },
  'C.6, responses with Huffman code': {
    tableBytes: 256,
    blocks: withHex(responses, [
      `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
       2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
      '4883 640e ffc1 c0bf',
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
       77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
       9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ]),
  },
};

function withHex(blocks: readonly Omit<Example, 'hex'>[], hex: readonly string[]): Example[] {
  return blocks.map((block, index) => ({ ...block, hex: hex[index] ?? '' }));
}

for (const [title, { tableBytes = 4096, blocks }] of Object.entries(examples)) {
  test(`example ${title}, decodes as the RFC says and leaves its table`, (t) => {
    for (const [last, example] of blocks.entries()) {
      const decoder = createDecoder({ tableBytes });
      // The peer tells that it has taken over a table smaller than the protocol's.
      if (tableBytes === 256) decode(decoder, '3fe1 01');
      for (const { hex, fields } of blocks.slice(0, last + 1)) {
        t.deepEqual(decode(decoder, hex), fields);
      }
      const table = drainTable(decoder);
      t.deepEqual(table, example.table);
      t.is(sizeOf(table), example.tableSize);
    }
  });
}

test('example C.1, integers in and beyond their prefix, as sizes that are accepted or not', (t) => {
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
