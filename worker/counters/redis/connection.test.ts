// Over a real socket, with the test as the server.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { systemClock } from '../../../shared/clock.ts';
import type { Duration } from '../../metrics.ts';
import {
  type Connection,
  createConnection,
  type RawReply,
  ReplyError,
  ReplyReader,
  toCommandText,
  toIncrementText,
} from './connection.ts';

async function setUp(t: ExecutionContext, callDuration?: Duration) {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as { port: number };
  const socket = connect(port, '127.0.0.1');
  const [[server]] = (await Promise.all([
    once(listener, 'connection'),
    once(socket, 'connect'),
  ])) as [[Socket], unknown];
  server.on('error', () => {});
  t.teardown(() => {
    socket.destroy();
    server.destroy();
    listener.close();
  });
  return {
    connection: createConnection(socket, { clock: systemClock, timeoutMs: 30_000, callDuration }),
    server,
  };
}

const send = (connection: Connection, ...commands: string[]) =>
  new Promise<RawReply[]>((resolve) => connection.send(commands, resolve));

test('replies are assigned to commands in order', async (t) => {
  const { connection, server } = await setUp(t);
  const answers = Promise.all([send(connection, 'a', 'b'), send(connection, 'c')]);
  let received = '';
  server.on('data', (chunk) => {
    received += chunk;
    // The line feed is what the opening of the connection has left of its last reply.
    if (received === 'abc') server.write('\n:1\r\n-ERR no\r\n+OK\r\n');
  });
  const [[one, refusal], other] = (await answers) as [RawReply[], RawReply[]];
  t.is(one, 1);
  t.is((refusal as Error).message, 'ERR no');
  t.deepEqual(other, ['OK']);
});

test('the end of the connection fails unanswered commands, once, and keeps received answers', async (t) => {
  const { connection, server } = await setUp(t);
  const answers = Promise.all([send(connection, 'a', 'b'), send(connection, 'c')]);
  server.end(':1\r\n');
  const [[one, lost], [alsoLost]] = (await answers) as [RawReply[], RawReply[]];
  t.is(one, 1);
  t.true(lost instanceof Error && alsoLost instanceof Error);
  t.is(await connection.ended, 'the connection was closed');
  t.true((await send(connection, 'd'))[0] instanceof Error);
});

for (const [title, bytes, reason] of [
  ['what is no reply', 'HTTP/1.1 200 OK\r\n', 'the server sent a reply that begins with "H"'],
  ['a reply to nothing', ':1\r\n:2\r\n', 'the server sent an unexpected reply'],
] as const) {
  test(`${title} ends the connection`, async (t) => {
    const { connection, server } = await setUp(t);
    const closed = once(server.resume(), 'close', { signal: AbortSignal.timeout(60_000) });
    const answer = send(connection, 'a');
    server.write(bytes);
    t.is(await connection.ended, reason);
    t.is((await answer).length, 1);
    await closed;
  });
}

test('a question resolves with the reply, and rejects with an error reply', async (t) => {
  const { connection, server } = await setUp(t);
  const answer = connection.ask('a');
  server.write('+yes\r\n');
  t.is(await answer, 'yes');
  const refused = connection.ask('b');
  server.write('-ERR no\r\n');
  await t.throwsAsync(refused, { message: 'ERR no' });
});

test('ending the connection in the middle of replies calls no callback twice', async (t) => {
  const { connection, server } = await setUp(t);
  const outcomes: RawReply[][] = [];
  const second = new Promise<void>((resolve) => {
    connection.send(['a'], (replies) => {
      outcomes.push(replies);
      connection.destroy();
    });
    connection.send(['b'], (replies) => {
      outcomes.push(replies);
      resolve();
    });
  });
  server.write(':1\r\n:2\r\n');
  await second;
  t.is(outcomes.length, 2);
  t.deepEqual(outcomes[0], [1]);
  t.true(outcomes[1]?.[0] instanceof Error);
});

test('each write is measured once, until its last reply or until no caller waits for it', async (t) => {
  const observed: number[] = [];
  const { connection, server } = await setUp(t, { observe: (seconds) => observed.push(seconds) });
  const answers = [send(connection, 'a', 'b'), send(connection, 'c')];
  server.write(':1\r\n:2\r\n');
  await answers[0];
  t.is(observed.length, 1);
  connection.destroy();
  await answers[1];
  t.is(observed.length, 2, 'a call without an answer');
  await send(connection, 'd');
  t.is(observed.length, 2, 'what could not be written is no call');
  t.true(observed.every((seconds) => seconds >= 0 && seconds < 60));
});

// Tests the bytes of commands and replies on the wire.

/** The bytes that the client library would write, one character for each byte. */
function toClientText(name: string, ...parameters: (string | number)[]): string {
  const written = new Command(name, parameters).toWritable({} as never);
  return Buffer.from(written).toString('latin1');
}

const keys = fc.oneof(fc.string(), fc.string({ unit: 'binary' }));

test("a command has the client library's bytes, whatever the key", (t) => {
  fc.assert(
    fc.property(keys, fc.nat(), (key, seconds) => {
      t.is(toCommandText('EXPIRE', key, seconds), toClientText('EXPIRE', key, seconds));
    }),
  );
});

test("an increment has the client library's bytes, whatever the key and the amount", (t) => {
  fc.assert(
    fc.property(keys, fc.bigInt({ min: 0n, max: 2n ** 64n }), (key, amount) => {
      const written = toIncrementText(key, amount);
      t.is(written, toClientText('INCRBY', key, String(amount)));
    }),
  );
});

test('half a character is written as the replacement character', (t) => {
  t.is(toCommandText('GET', '\ud800'), '*2\r\n$3\r\nGET\r\n$3\r\n\xef\xbf\xbd\r\n');
});

function read(...chunks: (string | Buffer)[]): {
  replies: RawReply[];
  problem: string | undefined;
} {
  const replies: RawReply[] = [];
  const reader = new ReplyReader((reply) => replies.push(reply));
  let problem: string | undefined;
  for (const chunk of chunks) problem ??= reader.feed(Buffer.from(chunk));
  return { replies, problem };
}

const replies: [string, RawReply][] = [
  [':0', 0],
  [':42', 42],
  [':-7', -7],
  [':999999999999999', 999_999_999_999_999],
  [':9223372036854775807', 2 ** 63],
  ['+PONG', 'PONG'],
  ['+', ''],
  ['-ERR no', new ReplyError('ERR no')],
  ['$-1', null],
  ['*-1', null],
  ['$0\r\n', ''],
  ['$4\r\na\r\nb', 'a\r\nb'],
  ['$3\r\n€', '€'],
  ['*0', []],
  ['*2\r\n:1\r\n*2\r\n$1\r\na\r\n*0', [1, ['a', []]]],
];
for (const [bytes, reply] of replies) {
  test(`${JSON.stringify(bytes)} is a reply`, (t) => {
    t.deepEqual(read(`${bytes}\r\n`), { replies: [reply], problem: undefined });
  });
}

test('a text has as many characters as its length states, and an array as many items', (t) => {
  for (const length of [8, 9, 10, 12, 19, 20, 89, 90, 99, 100, 2_000]) {
    const text = 'x'.repeat(length);
    const items = Array.from({ length }, (_, index) => index);
    const bytes = `*${length}\r\n${items.map((item) => `:${item}\r\n`).join('')}`;
    t.deepEqual(read(`$${length}\r\n${text}\r\n${bytes}`), {
      replies: [text, items],
      problem: undefined,
    });
  }
});

test('replies are the same however their bytes arrive', (t) => {
  const someReplies = fc.array(fc.nat({ max: replies.length - 1 }), { maxLength: 12 });
  const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 20 });
  fc.assert(
    fc.property(someReplies, cuts, (positions, cutPositions) => {
      const bytes = Buffer.from(
        positions.map((position) => `${replies[position]?.[0]}\r\n`).join(''),
      );
      const ends = [...cutPositions, bytes.length].sort((one, other) => one - other);
      const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
      t.deepEqual(read(...chunks), {
        replies: positions.map((position) => replies[position]?.[1] ?? null),
        problem: undefined,
      });
    }),
  );
});

const wrong: [string, string][] = [
  ['HTTP/1.1 400 Bad Request\r\n', 'a reply that begins with "H"'],
  ['%1\r\n', 'a reply that begins with "%"'],
  [':x\r\n', 'an invalid integer'],
  [':\r\n', 'an invalid integer'],
  [':12345678901234567890\r\n', 'an invalid integer'],
  ['$-2\r\n', 'an invalid length'],
  ['*:\r\n', 'an invalid length'],
  ['*1:\r\n', 'an invalid length'],
  ['*1/\r\n', 'an invalid length'],
  ['$99999999999\r\n', 'an invalid length'],
  ['*99999999\r\n', 'an invalid length'],
  ['$1\r\nab\r\n', 'a text whose length differs from the announced one'],
  [`+${'x'.repeat(20_000)}`, 'an endless line'],
  [`-${'x'.repeat(20_000)}\r\n`, 'an endless line'],
  ['*2\r\n$99999\r\n', 'an endless text'],
  ['*1\r\n'.repeat(9), 'arrays that are nested too deeply'],
];
for (const [bytes, problem] of wrong) {
  test(`${JSON.stringify(bytes.slice(0, 30))} is refused: ${problem}`, (t) => {
    t.deepEqual(read(bytes), { replies: [], problem });
  });
}

test('an array without an end is refused', (t) => {
  const item = `$60000\r\n${'x'.repeat(60_000)}\r\n`;
  const chunks = Array.from({ length: 200 }, () => item);
  t.is(read('*1000\r\n', ...chunks).problem, 'an endless array');
});

test('a text that is too long to be a counter is skipped', (t) => {
  const parts = Array.from({ length: 100 }, () => 'x'.repeat(1_000));
  const { replies: received, problem } = read(':1\r\n$100000\r\n', ...parts, '\r', '\n:2\r\n');
  t.is(problem, undefined);
  t.deepEqual(received, [1, '', 2]);
});

test('a skipped text may begin in the bytes of another reply and end in others', (t) => {
  const { replies: received, problem } = read(
    `:1\r\n$100000\r\n${'x'.repeat(40_000)}`,
    'x'.repeat(40_000),
    `${'x'.repeat(20_000)}\r\n:2\r\n`,
  );
  t.is(problem, undefined);
  t.deepEqual(received, [1, '', 2]);
});

test('any bytes are replies or refused, the same however they are split', (t) => {
  const likely = fc.string({ unit: fc.constantFrom(...':+-$*0123456789\r\nx') });
  const pieces = fc.constantFrom(
    ...replies.map(([bytes]) => bytes),
    ...wrong.map(([bytes]) => bytes),
  );
  const chunks = fc.array(fc.oneof(likely, pieces, fc.constant('\r\n')));
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 9 }), (parts, size) => {
      const bytes = Buffer.from(parts.join(''));
      const cut = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      );
      const uncut = read(bytes);
      t.deepEqual(read(...cut), uncut);
      t.true(uncut.problem === undefined || uncut.problem.length > 0);
    }),
    { numRuns: 1_000 },
  );
});
