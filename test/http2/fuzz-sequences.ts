// Generates sequences of valid frames, with the answers that they must get, and damaged variants of them, all from a
// seed.
import {
  errorCodes,
  flags,
  frameTypes,
  preface,
  settingIds,
  settingsAck,
  toData,
  toFrame,
  toHpackInteger,
  toHpackString,
  toMessage,
  toPing,
  toPriority,
  toReset,
  toSettings,
  toUInt32,
  toWindowUpdate,
} from '../support/http2-frames.ts';
import type { Random } from '../support/random.ts';

export interface Sequence {
  /** The preface first, then one frame each. */
  readonly parts: readonly Buffer[];
  /** By stream: the DATA of its required answer. */
  readonly answers: ReadonlyMap<number, Buffer>;
}

interface OpenStream {
  readonly id: number;
  readonly message: Buffer;
  /** What is left of the message with its prefix. */
  rest: Buffer;
}

/** Stays well below every window and limit, so that every call that is not abandoned must be answered. */
export function createValidSequence(random: Random, path: string): Sequence {
  const parts: Buffer[] = [preface, toSettings(randomSettings(random))];
  const answers = new Map<number, Buffer>();
  const open: OpenStream[] = [];
  const table = createFieldWriter(random);
  let streamId = random.chance(0.8) ? 1 : 2 * random.below(1000) + 1;

  const begin = () => {
    const message = random.bytes(random.pick([0, 1, 5, 20, 300]));
    const block = table.writeRequest(path);
    parts.push(...toHeaderFrames(random, streamId, block, false));
    open.push({ id: streamId, message, rest: toMessage(message) });
    streamId += random.chance(0.9) ? 2 : 2 * (1 + random.below(20));
  };
  const proceed = (stream: OpenStream) => {
    const cut = random.chance(0.5) ? stream.rest.length : random.below(stream.rest.length + 1);
    const piece = stream.rest.subarray(0, cut);
    stream.rest = stream.rest.subarray(cut);
    const isLast = stream.rest.length === 0 && random.chance(0.8);
    const hasTrailers = isLast && random.chance(0.1);
    parts.push(toDataFrame(random, stream.id, piece, isLast && !hasTrailers));
    if (hasTrailers) {
      const block = table.writeField('x-end', 'yes');
      parts.push(...toHeaderFrames(random, stream.id, block, true));
    }
    if (isLast) {
      open.splice(open.indexOf(stream), 1);
      answers.set(stream.id, toMessage(stream.message));
    }
  };
  const giveUp = (stream: OpenStream) => {
    open.splice(open.indexOf(stream), 1);
    parts.push(toReset(stream.id, random.pick([errorCodes.cancel, errorCodes.noError, 77])));
  };

  for (let steps = 1 + random.below(25); steps > 0; steps--) {
    const stream = open.length > 0 ? random.pick(open) : undefined;
    const choice = random.below(20);
    if (choice < 8 || (stream === undefined && choice < 13)) begin();
    else if (choice < 13) proceed(stream as OpenStream);
    else if (choice === 13 && stream !== undefined) giveUp(stream);
    else parts.push(toSideFrame(random, stream?.id ?? 0));
  }
  while (open.length > 0) proceed(random.pick(open));
  // Windows that were made small are opened again.
  parts.push(toSettings({ [settingIds.initialWindowSize]: 65_535 }));
  return { parts, answers };
}

/** Frames that do not advance a call. */
function toSideFrame(random: Random, openId: number): Buffer {
  switch (random.below(8)) {
    case 0:
      return toPing(random.pick([flags.none, flags.ack]));
    case 1:
      return toSettings(randomSettings(random));
    case 2:
      return settingsAck;
    case 3:
      return toPriority(2 * random.below(100) + 1, 0);
    case 4:
      return toWindowUpdate(0, 1 + random.below(1000));
    case 5:
      return toWindowUpdate(openId, 1 + random.below(1000));
    case 6:
      return toFrame(10 + random.below(246), random.below(256), random.below(9), random.bytes(7));
    default:
      return openId === 0 ? toPing() : toDataFrame(random, openId, Buffer.alloc(0), false);
  }
}

function randomSettings(random: Random): Record<number, number> {
  const settings: Record<number, number> = {};
  if (random.chance(0.5)) settings[settingIds.initialWindowSize] = random.pick([1, 50, 100_000]);
  if (random.chance(0.3)) settings[settingIds.headerTableSize] = random.pick([0, 100, 65_536]);
  if (random.chance(0.3)) settings[settingIds.maxFrameSize] = random.pick([16_384, 2 ** 24 - 1]);
  if (random.chance(0.3)) settings[settingIds.enablePush] = random.below(2);
  if (random.chance(0.2)) settings[77] = random.below(2 ** 31);
  return settings;
}

/** Header fields in every representation of RFC 7541 section 6, with its own table. */
function createFieldWriter(random: Random) {
  const entries: string[] = [];
  /** The most recent entries that the server's table surely still contains. */
  const maxEntries = 20;

  function writeField(name: string, value: string): Buffer {
    const key = `${name}: ${value}`;
    const found = entries.indexOf(key);
    if (found >= 0 && random.chance(0.8)) return toHpackInteger(62 + found, 7, 0x80);
    const text = [toHpackString(name), toHpackString(value)];
    if (found < 0 && entries.length < maxEntries && random.chance(0.5)) {
      entries.unshift(key);
      return Buffer.concat([Buffer.of(0x40), ...text]);
    }
    return Buffer.concat([Buffer.of(random.pick([0x00, 0x10])), ...text]);
  }

  return {
    writeField,
    writeRequest(path: string): Buffer {
      const fields = [
        // Of the static table: `:method: POST` and `:scheme: http`.
        ...(random.chance(0.7)
          ? [Buffer.of(0x83, 0x86)]
          : [writeField(':method', 'POST'), writeField(':scheme', 'http')]),
        writeField(':path', path),
        writeField('te', 'trailers'),
        writeField('content-type', random.pick(['application/grpc', 'application/grpc+proto'])),
      ];
      for (let more = random.below(4); more > 0; more--) {
        fields.push(writeField(`x-${random.below(5)}`, 'v'.repeat(random.below(40))));
      }
      if (random.chance(0.2)) fields.push(writeField('grpc-timeout', '1H'));
      return Buffer.concat(fields);
    },
  };
}

function toHeaderFrames(
  random: Random,
  streamId: number,
  block: Buffer,
  endStream: boolean,
): Buffer[] {
  const pieces: Buffer[] = [];
  let rest = block;
  while (random.chance(0.2) && pieces.length < 5) {
    const cut = random.below(rest.length + 1);
    pieces.push(rest.subarray(0, cut));
    rest = rest.subarray(cut);
  }
  pieces.push(rest);
  return pieces.map((piece, index) => {
    const endHeaders = index === pieces.length - 1 ? flags.endHeaders : flags.none;
    if (index > 0) return toFrame(frameTypes.continuation, endHeaders, streamId, piece);
    const isPrior = random.chance(0.1);
    const padding = random.chance(0.1) ? random.below(256) : undefined;
    const payload = Buffer.concat([
      ...(padding === undefined ? [] : [Buffer.of(padding)]),
      ...(isPrior ? [toUInt32(0), random.bytes(1)] : []),
      piece,
      Buffer.alloc(padding ?? 0),
    ]);
    const bits =
      endHeaders |
      (endStream ? flags.endStream : 0) |
      (isPrior ? flags.priority : 0) |
      (padding === undefined ? 0 : flags.padded);
    return toFrame(frameTypes.headers, bits, streamId, payload);
  });
}

function toDataFrame(random: Random, streamId: number, piece: Buffer, endStream: boolean): Buffer {
  const end = endStream ? flags.endStream : flags.none;
  if (!random.chance(0.15)) return toData(streamId, piece, end);
  const padding = random.below(256);
  const payload = Buffer.concat([Buffer.of(padding), piece, Buffer.alloc(padding)]);
  return toData(streamId, payload, end | flags.padded);
}

/** One to four damages, of whole frames or of single bytes. */
export function damage(random: Random, parts: readonly Buffer[]): Buffer {
  const frames = [...parts];
  for (let count = random.pick([1, 1, 1, 2, 4]); count > 0; count--) {
    const index = 1 + random.below(frames.length - 1);
    const frame = frames[index] ?? Buffer.alloc(9);
    switch (random.below(16)) {
      case 0:
        frames.splice(index, 1);
        break;
      case 1:
        frames.splice(1 + random.below(frames.length), 0, frame);
        break;
      case 2:
        frames.splice(index, 0, toFrame(random.below(12), random.below(256), random.below(20)));
        break;
      case 3:
        frames[index] = withByte(frame, 3, random.below(12));
        break;
      case 4:
        frames[index] = withByte(frame, 4, random.below(256));
        break;
      case 5:
        frames[index] = withByte(frame, 8, random.below(64));
        break;
      case 6:
        frames[index] = withByte(frame, random.below(3), random.below(256));
        break;
      case 7:
        frames[index] = frame.subarray(0, random.below(frame.length + 1));
        break;
      case 8:
        frames.splice(index, 0, random.bytes(random.below(40)));
        break;
      case 9:
        frames[index] = withByte(frame, random.below(frame.length), random.below(256));
        break;
      default:
        // In the payload of DATA, which only gRPC reads.
        if (frame[3] === frameTypes.data)
          frames[index] = withByte(frame, 9 + random.below(frame.length), random.below(256));
    }
    if (frames.length < 2) break;
  }
  return Buffer.concat(frames);
}

function withByte(bytes: Buffer, position: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  if (position < copy.length) copy[position] = value;
  return copy;
}

/** Frames of random types, flags, streams and payloads after a valid greeting. */
export function createRandomFrames(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random.below(30) }, () =>
    toFrame(
      random.below(11),
      random.below(256),
      random.chance(0.3) ? 0 : 2 * random.below(6) + 1,
      random.bytes(random.pick([0, 4, 5, 8, random.below(60)])),
    ),
  );
  return Buffer.concat([preface, toSettings(), ...frames]);
}

/** Splits `bytes` into chunks as a socket may deliver them. */
export function cutAnywhere(random: Random, bytes: Buffer): Buffer[] {
  const most = random.pick([1, 7, 100, 5000, bytes.length || 1]);
  const chunks: Buffer[] = [];
  for (let position = 0; position < bytes.length; ) {
    const end = position + 1 + random.below(most);
    chunks.push(bytes.subarray(position, end));
    position = end;
  }
  return chunks;
}
