import test from 'ava';
import { flags as frameFlags, frameTypes } from '../../support/http2-frames.ts';
import { createFrameReader, type FrameHandler } from './frame-reader.ts';
import { frameHeaderLength, writeFrameHeader } from './frames.ts';

function frame(type: number, flags: number, id: number, payload: string): Buffer {
  const bytes = Buffer.alloc(frameHeaderLength + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, id);
  bytes.write(payload, frameHeaderLength, 'latin1');
  return bytes;
}

/** Reads the chunks and gives what was found, as text. */
function readAll(chunks: readonly Buffer[]): string[] {
  const found: string[] = [];
  const note =
    (name: string): FrameHandler['onData'] =>
    (id, bytes, start, end, ends) =>
      found.push(`${name} ${id} ${bytes.toString('latin1', start, end)}${ends ? ' end' : ''}`);
  const reader = createFrameReader({
    onData: note('data'),
    onHeaders: note('headers'),
    onReset: (id, code) => found.push(`reset ${id} ${code}`),
    onSettings: (bytes, start, end) => found.push(`settings ${bytes.toString('hex', start, end)}`),
    onPing: (payload) => found.push(`ping ${payload.toString('latin1')}`),
    onGoAway: (code) => found.push(`goaway ${code}`),
    onWindowUpdate: (id, increment) => found.push(`window ${id} ${increment}`),
  });
  // In memory that is used again, as the socket does.
  const memory = Buffer.alloc(1024);
  for (const chunk of chunks) reader.read(memory.subarray(0, chunk.copy(memory)));
  return found;
}

const stream = Buffer.concat([
  frame(frameTypes.settings, 0, 0, '\0\x03\0\0\0\x64'),
  frame(frameTypes.settings, frameFlags.ack, 0, ''),
  frame(frameTypes.headers, frameFlags.endHeaders, 1, 'block'),
  frame(frameTypes.data, frameFlags.padded, 1, '\x02hello--'),
  frame(frameTypes.headers, frameFlags.endStream, 1, 'first '),
  frame(frameTypes.continuation, 0, 1, 'second '),
  frame(frameTypes.continuation, frameFlags.endHeaders, 1, 'third'),
  frame(frameTypes.headers, frameFlags.endHeaders | frameFlags.priority, 3, '12345block'),
  frame(frameTypes.data, frameFlags.endStream, 3, 'x'),
  frame(frameTypes.rstStream, 0, 5, '\0\0\0\x08'),
  frame(frameTypes.ping, 0, 0, '12345678'),
  frame(frameTypes.ping, frameFlags.ack, 0, '12345678'),
  frame(frameTypes.windowUpdate, 0, 0, '\0\0\x01\0'),
  frame(0xfa, 0, 0, 'unknown'),
  frame(frameTypes.goAway, 0, 0, '\0\0\0\0\0\0\0\x02'),
]);
const expected = [
  'settings 000300000064',
  'headers 1 block',
  'data 1 hello',
  'headers 1 first second third end',
  'headers 3 block',
  'data 3 x end',
  'reset 5 8',
  'ping 12345678',
  'window 0 256',
  'goaway 2',
];

test('frames are the same however they are cut into chunks', (t) => {
  t.deepEqual(readAll([stream]), expected);
  for (const size of [1, 2, 7, 10, 50]) {
    const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
      stream.subarray(index * size, (index + 1) * size),
    );
    t.deepEqual(readAll(chunks), expected);
  }
});

test('what is not HTTP/2 is refused', (t) => {
  const tooLong = Buffer.alloc(frameHeaderLength);
  writeFrameHeader(tooLong, 0, 16_385, frameTypes.data, 0, 1);
  t.throws(() => readAll([tooLong]), { message: 'a frame of 16385 bytes' });
  t.throws(() => readAll([frame(frameTypes.continuation, 0, 1, '')]), { message: /interrupted/ });
  const open = frame(frameTypes.headers, 0, 1, 'a');
  t.throws(() => readAll([open, frame(frameTypes.data, 0, 1, '')]), { message: /interrupted/ });
  t.throws(() => readAll([frame(frameTypes.data, frameFlags.padded, 1, '\x05abc')]), {
    message: /padding/,
  });
});
