// Tests our HPACK against that of Node's own HTTP/2: the headers that Node's client sends decode to those it was given,
// and it decodes those that are encoded here.
import { once } from 'node:events';
import http2, { type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import net, { type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type Pair, toPairs } from '../../../../test/support/hpack-blocks.ts';
import {
  flags,
  frameTypes,
  preface,
  settingIds,
  settingsAck,
  splitFrames,
  toFrame,
  toSettings,
} from '../../../../test/support/http2-frames.ts';
import { listenFor } from '../../../../test/support/listen.ts';
import { createHpackDecoder } from './decoder.ts';
import { encodeHeaderBlock } from './encoder.ts';
import type { HeaderField } from './header-field.ts';
import { staticTable } from './static-table.ts';

/** A minimal server that shows header blocks as received, and answers with one. */
function answerBlocks(
  socket: Socket,
  options: { tableBytes: number; answer: (block: Buffer) => Buffer },
): void {
  socket.write(toSettings({ [settingIds.headerTableSize]: options.tableBytes }));
  let received: Buffer = Buffer.alloc(0);
  let position = preface.length;
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    if (received.length < position) return;
    const { frames, rest } = splitFrames(received.subarray(position));
    received = rest;
    position = 0;
    for (const { type, flags: bits, streamId, payload } of frames) {
      if (type === frameTypes.settings && (bits & flags.ack) === 0) socket.write(settingsAck);
      if (type !== frameTypes.headers) continue;
      const answer = options.answer(payload.subarray((bits & flags.priority) === 0 ? 0 : 5));
      socket.write(toFrame(type, flags.endHeaders | flags.endStream, streamId, answer));
    }
  });
}

/** A client of Node's and our server; `call` resolves with the response's headers. */
async function startPair(
  t: ExecutionContext,
  options: { tableBytes: number; answer: (block: Buffer) => Buffer },
): Promise<{ call: (headers: OutgoingHttpHeaders) => Promise<IncomingHttpHeaders> }> {
  const server = net.createServer((socket) => answerBlocks(socket, options));
  const port = await listenFor(t, server);
  const client = http2.connect(`http://127.0.0.1:${port}`);
  t.teardown(() => client.destroy());
  // Ensures that the first block follows the settings of both sides.
  await once(client, 'remoteSettings');
  const call = async (headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> => {
    const stream = client.request(headers, { endStream: true });
    const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    stream.resume();
    await once(stream, 'close');
    return answer;
  };
  return { call };
}

const okBlock = encodeHeaderBlock([[':status', '200']]);

const pseudoHeaders: OutgoingHttpHeaders = {
  ':method': 'POST',
  ':path': '/ratelane.test.Service/Method',
  ':scheme': 'http',
  ':authority': 'ratelimit.example:8081',
};

async function exchange(
  t: ExecutionContext,
  tableBytes: number,
  requests: readonly OutgoingHttpHeaders[],
): Promise<number> {
  const decoder = createHpackDecoder({ tableBytes, maxListBytes: 65_536 });
  const decoded: Pair[][] = [];
  let octets = 0;
  const { call } = await startPair(t, {
    tableBytes,
    answer: (block) => {
      const fields: HeaderField[] = [];
      decoder.decode(block, 0, block.length, fields);
      decoded.push(toPairs(fields));
      octets += block.length;
      return okBlock;
    },
  });
  for (const headers of requests) await call({ ...pseudoHeaders, ...headers });
  t.deepEqual(
    decoded.map((pairs) => Object.fromEntries(pairs)),
    requests.map((headers) => ({ ...pseudoHeaders, ...headers })),
  );
  return octets;
}

/** Like the calls of proxies: two fields are new each time, so the table is replaced many times. */
const traced = Array.from({ length: 200 }, (_, index): OutgoingHttpHeaders => {
  const id = (index * 0x9e3779b1).toString(16).padStart(16, '0');
  return {
    te: 'trailers',
    'content-type': 'application/grpc',
    traceparent: `00-${id}${id}-${id}-01`,
    'x-request-id': `${id.slice(8)}-0000-4000-8000-${id}`,
  };
});

for (const tableBytes of [4096, 65_536, 512, 0]) {
  test(`requests of Node decode, with a table of ${tableBytes} octets`, async (t) => {
    const octets = await exchange(t, tableBytes, traced);
    t.true(octets < traced.length * 350, 'they are compressed');
  });
}

test('every name of the static table and every octet Node sends arrive', async (t) => {
  const names = staticTable
    .map(({ name }) => name)
    // Headers of the connection are not allowed in HTTP/2.
    .filter((name) => !name.startsWith(':') && name !== 'transfer-encoding' && name !== 'host');
  const octets = Array.from({ length: 256 }, (_, octet) => String.fromCharCode(octet)).filter(
    (character) => character === '\t' || (character >= ' ' && character !== '\x7f'),
  );
  await exchange(t, 4096, [
    // A single octet is sent unchanged; among many octets with short codes Node uses the Huffman code.
    ...octets.map((character) => ({ 'x-octet': `${'a'.repeat(40)}${character}${'0'.repeat(40)}` })),
    ...names.map((name) => ({ [name]: 'value' })),
    ...names.map((name) => ({ [name]: '' })),
  ]);
});

test('Node understands what is encoded', async (t) => {
  const responses: readonly Pair[][] = [
    ...staticTable
      .filter(({ name }) => name === ':status')
      .map(({ value }): Pair[] => [[':status', value]]),
    ...staticTable
      .filter(({ name }) => !name.startsWith(':') && name !== 'transfer-encoding')
      .map(({ name, value }): Pair[] => [
        [':status', '418'],
        // Any other length would require a body.
        [name, value === '' ? '0' : value],
      ]),
    [
      [':status', '200'],
      ['content-type', 'application/grpc'],
      ['grpc-status', '0'],
      ['grpc-message', `long ${'%20'.repeat(300)}`],
    ],
  ];
  let next = 0;
  const { call } = await startPair(t, {
    tableBytes: 4096,
    answer: () => encodeHeaderBlock(responses[next++] ?? []),
  });
  for (const pairs of responses) {
    const answer = await call(pseudoHeaders);
    for (const [name, value] of pairs) t.is(String(answer[name]), value, name);
  }
});
