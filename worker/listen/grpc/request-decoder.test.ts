import { isUtf8 } from 'node:buffer';
import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { hashed } from '../../../test/support/hashed-entries.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { RateLimitRequest } from '../../decision/message.ts';
import { defaultRequestBounds } from '../../decision/request-bounds.ts';
import { decodeRateLimitRequest } from './request-decoder.ts';

const { rateLimitService } = loadProtos();
const { requestSerialize } = rateLimitService.ShouldRateLimit;

const text = fc.string({
  unit: fc.oneof(fc.constantFrom('a', 'é', '€', '😀', '\u0000'), fc.string({ maxLength: 1 })),
});
const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 2 ** 31, 2 ** 32 - 1), fc.nat());
const uint64 = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
const unset = fc.constant(undefined);
const anyRequest: fc.Arbitrary<RateLimitRequest> = fc.record({
  domain: text,
  descriptors: fc.array(
    fc.record({
      entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
      limit: fc.oneof(
        unset,
        fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: -3, max: 9 }) }),
      ),
      hitsAddend: fc.oneof(unset, uint64.map(toExact)),
      isNegativeHits: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
  hitsAddend: uint32,
});

function toExact(value: bigint): number | bigint {
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}

/** Encodes with the library, as the reference for decoding. */
function encode(request: RateLimitRequest): Buffer {
  return requestSerialize({
    ...request,
    descriptors: request.descriptors.map((descriptor) => ({
      entries: descriptor.entries,
      ...(descriptor.limit === undefined ? {} : { limit: descriptor.limit }),
      ...(descriptor.hitsAddend === undefined
        ? {}
        : { hitsAddend: { value: String(descriptor.hitsAddend) } }),
      isNegativeHits: descriptor.isNegativeHits,
    })),
  });
}

function hex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(' ', ''), 'hex');
}

test('a request that the library encoded is decoded unchanged', (t) => {
  fc.assert(
    fc.property(anyRequest, (request) => {
      const descriptors = request.descriptors.map((each) => ({ ...each, ...hashed(each.entries) }));
      t.deepEqual(decodeRateLimitRequest(encode(request)), {
        ok: true,
        message: { ...request, descriptors },
      });
    }),
    { numRuns: 300 },
  );
  t.pass();
});

test('truncated, damaged and random bytes are read by the rules of protobuf', (t) => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 });
  const damaged = fc
    .tuple(
      anyRequest,
      changes,
      fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    )
    .map(([request, changes, part]) => {
      const full = encode(request);
      const bytes = full.subarray(0, Math.floor(full.length * part));
      for (const [position, value] of changes)
        if (bytes.length > 0) bytes[position % bytes.length] = value;
      return bytes;
    });
  const tag = fc
    .tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 7 }))
    .map(([field, type]) => Buffer.of((field << 3) | type));
  const soup = fc
    .array(
      fc.oneof(
        tag,
        tag,
        fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
      ),
      { maxLength: 14 },
    )
    .map((parts) => Buffer.concat(parts));
  let accepted = 0;
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(damaged, soup), (bytes) => {
      const decoded = decodeRateLimitRequest(bytes);
      const expected = decodeByRules(bytes);
      if (decoded.ok) accepted++;
      else refused++;
      t.deepEqual(decoded.ok ? decoded.message : undefined, expected, bytes.toString('hex'));
    }),
    { numRuns: 3000 },
  );
  t.true(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`);
});

testLines(test, new URL('request-decoder.txt', import.meta.url), (given) => {
  const decoded = decodeRateLimitRequest(hex(given));
  if (!decoded.ok) return `${decoded.problem}, in ${decoded.position}`;
  const { domain, descriptors, hitsAddend } = decoded.message;
  const texts = descriptors.map(({ hash, entries, ...each }) =>
    inspect(
      { ...each, isHashed: hash === hashed(entries).hash, entries },
      { breakLength: Infinity },
    ),
  );
  return [`domain ${JSON.stringify(domain)}`, ...texts, `hits ${hitsAddend}`].join(', ');
});

test('extremely nested groups are refused without deep recursion', (t) => {
  const decoded = decodeRateLimitRequest(Buffer.alloc(1_000_000, 0x4b));
  t.deepEqual(decoded, {
    ok: false,
    problem: 'groups are nested too deeply',
    position: 'the request',
  });
});

test('with REQUEST_INVALID_UTF8=count invalid UTF-8 is counted by its bytes, and characters are unchanged', (t) => {
  const readValue = (bytes: Uint8Array) => {
    const value = Buffer.concat([Buffer.of(0x12, bytes.length), bytes]);
    const entry = Buffer.concat([Buffer.of(0x0a, value.length), value]);
    const request = Buffer.concat([Buffer.of(0x12, entry.length), entry]);
    const bounds = { ...defaultRequestBounds, invalidUtf8: 'count' } as const;
    const decoded = decodeRateLimitRequest(request, 0, request.length, bounds);
    return decoded.ok ? decoded.message.descriptors[0]?.entries[0]?.value : decoded.problem;
  };
  t.is(readValue(Buffer.from('caf\xe9', 'latin1')), 'caf\\xe9');
  t.is(readValue(Buffer.from('ed a0 80 c3 a9 f5', 'utf8')), 'ed a0 80 c3 a9 f5');
  t.is(readValue(hex('ed a0 80 c3 a9 f5')), '\\xed\\xa0\\x80é\\xf5');
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const bytes = Buffer.concat(pieces);
      const text = readValue(bytes) ?? '';
      if (isUtf8(bytes)) t.is(text, bytes.toString());
      else {
        const back = text.replace(/\\x([0-9a-f]{2})/g, (_, digits: string) =>
          String.fromCharCode(0xdc00 + Number.parseInt(digits, 16)),
        );
        t.is(back.toWellFormed(), toReplaced(bytes));
      }
    }),
  );
});

/** Replaces each byte that is not part of a character by one replacement character. */
function toReplaced(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const size = [1, 2, 3, 4].find(
      (length) => at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)),
    );
    text += size === undefined ? '\ufffd' : bytes.toString('utf8', at, at + size);
    at += size ?? 1;
  }
  return text;
}

// The protobuf rules once more, in a slow and simple form: a message is a list of fields, each with its number, wire
// type and content; undefined for bytes that are not such a list.
interface Field {
  readonly number: number;
  readonly type: number;
  readonly integer: bigint;
  readonly bytes: Buffer;
}

function toFields(
  bytes: Buffer,
  start = 0,
  group?: number,
): { fields: Field[]; end: number } | undefined {
  const fields: Field[] = [];
  let position = start;
  const varint = (): bigint | undefined => {
    let value = 0n;
    for (let index = 0n; index < 10n; index++) {
      const byte = bytes[position++];
      if (byte === undefined) return undefined;
      value |= BigInt(byte & 127) << (7n * index);
      if (byte < 128) return value < 2n ** 64n ? value : undefined;
    }
    return undefined;
  };
  while (position < bytes.length) {
    const tag = varint();
    if (tag === undefined || tag >> 3n < 1n || tag >> 3n > 2n ** 29n - 1n) return undefined;
    const number = Number(tag >> 3n);
    const type = Number(tag & 7n);
    let integer = 0n;
    let length = 0;
    if (type === 0) {
      const value = varint();
      if (value === undefined) return undefined;
      integer = value;
    } else if (type === 1) length = 8;
    else if (type === 5) length = 4;
    else if (type === 2) {
      const value = varint();
      if (value === undefined || value > bytes.length) return undefined;
      length = Number(value);
    } else if (type === 3) {
      const inner = toFields(bytes, position, number);
      if (inner === undefined) return undefined;
      position = inner.end;
    } else if (type === 4 && number === group) return { fields, end: position };
    else return undefined;
    if (position + length > bytes.length) return undefined;
    fields.push({ number, type, integer, bytes: bytes.subarray(position, position + length) });
    position += length;
  }
  return group === undefined ? { fields, end: position } : undefined;
}

class Refusal extends Error {}

function fieldsOf(bytes: Buffer): Field[] {
  const parsed = toFields(bytes);
  if (parsed === undefined) throw new Refusal();
  return parsed.fields;
}

function pick(fields: readonly Field[], number: number, type: number): Field[] {
  return fields.filter((field) => field.number === number && field.type === type);
}

function stringAt(fields: readonly Field[], number: number): string {
  let value = '';
  for (const field of pick(fields, number, 2)) {
    try {
      value = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(field.bytes);
    } catch {
      throw new Refusal();
    }
  }
  return value;
}

/** Merging sub-messages equals reading their fields one after the other. */
function merged(fields: readonly Field[], number: number): Field[] | undefined {
  const all = pick(fields, number, 2).map((field) => fieldsOf(field.bytes));
  return all.length === 0 ? undefined : all.flat();
}

function decodeByRules(bytes: Buffer): RateLimitRequest | undefined {
  try {
    const fields = fieldsOf(bytes);
    return {
      domain: stringAt(fields, 1),
      descriptors: pick(fields, 2, 2).map((field) => {
        const descriptor = fieldsOf(field.bytes);
        const limit = merged(descriptor, 2);
        const hits = merged(descriptor, 3);
        return {
          ...hashed(
            pick(descriptor, 1, 2).map((item) => {
              const entry = fieldsOf(item.bytes);
              return { key: stringAt(entry, 1), value: stringAt(entry, 2) };
            }),
          ),
          limit: limit && {
            requestsPerUnit: Number(BigInt.asUintN(32, pick(limit, 1, 0).at(-1)?.integer ?? 0n)),
            unit: Number(BigInt.asIntN(32, pick(limit, 2, 0).at(-1)?.integer ?? 0n)),
          },
          hitsAddend: hits && toExact(pick(hits, 1, 0).at(-1)?.integer ?? 0n),
          isNegativeHits: (pick(descriptor, 4, 0).at(-1)?.integer ?? 0n) !== 0n,
        };
      }),
      hitsAddend: Number(BigInt.asUintN(32, pick(fields, 3, 0).at(-1)?.integer ?? 0n)),
    };
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

test("a descriptor's hash is the same in each release, since it chooses what is recorded", (t) => {
  t.is(hashed([{ key: 'user', value: 'ada' }]).hash, 2117330278);
  const entries = [
    { key: 'pfad', value: '/é/€' },
    { key: 'x', value: '' },
  ];
  t.is(hashed(entries).hash, -27191383);
});
