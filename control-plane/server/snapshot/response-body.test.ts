// Bodies assembled by hand, read by the protobuf library.
import test from 'ava';
import fc from 'fast-check';
import { loadDiscoveryProtos, rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';
import {
  createResource,
  createSnapshot,
  largestResponseBytes,
  noResources,
  toDelta,
  toFullBody,
  toSelectedBody,
  toSharedDelta,
  toStringField,
} from './snapshot.ts';

const { StreamAggregatedResources: sotw, DeltaAggregatedResources: delta } =
  loadDiscoveryProtos().aggregated;

const contents = fc.dictionary(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }),
  fc.uint8Array({ maxLength: 400 }),
  { maxKeys: 8, noNullPrototype: true },
);

function snapshotOf(given: Readonly<Record<string, Uint8Array>>) {
  return createSnapshot(
    Object.entries(given).map(([name, config]) => createResource(name, Buffer.from(config))),
  );
}

test('a body that all streams get is encoded once', (t) => {
  const snapshot = snapshotOf({ shop: Buffer.from('x') });
  t.is(toFullBody(snapshot), toFullBody(snapshot));
  t.is(toSharedDelta(noResources, snapshot), toSharedDelta(noResources, snapshot));
  const [first, second] = [toSelectedBody(snapshot), toSelectedBody(snapshot)];
  t.true(
    first.slice(2).every((part, at) => part === second[at + 2]),
    'of each resource',
  );
});

test('a response contains what the snapshot has, in both protocols', (t) => {
  fc.assert(
    fc.property(contents, (given) => {
      const snapshot = snapshotOf(given);
      const expected = [...snapshot.resources.keys()].map((name) => ({
        type_url: rateLimitConfigTypeUrl,
        value: Buffer.from(given[name] ?? []),
      }));
      const nonce = toStringField(5, '7');
      for (const body of [toFullBody(snapshot), toSelectedBody(snapshot)]) {
        t.deepEqual(sotw.responseDeserialize(Buffer.concat([nonce, ...body])), {
          versionInfo: snapshot.version,
          resources: expected,
          typeUrl: rateLimitConfigTypeUrl,
          nonce: '7',
        });
      }
      const { bytes, names } = toSharedDelta(noResources, snapshot);
      t.deepEqual(names, [...snapshot.resources.keys()]);
      t.deepEqual(delta.responseDeserialize(Buffer.concat([nonce, ...bytes])), {
        systemVersionInfo: snapshot.version,
        resources: [...snapshot.resources.values()].map(({ name, version }, at) => ({
          version,
          resource: expected[at] ?? null,
          name,
        })),
        typeUrl: rateLimitConfigTypeUrl,
        nonce: '7',
        removedResources: [],
      });
    }),
    { numRuns: 100 },
  );
});

test('a delta has what is new and other, what is gone, and what is asked for again', (t) => {
  const before = snapshotOf({ same: Buffer.from('1'), other: Buffer.from('1'), gone: Buffer.of() });
  const after = snapshotOf({ same: Buffer.from('1'), other: Buffer.from('2'), new: Buffer.of() });
  t.deepEqual(toDelta(before.resources, after, new Set()).names, ['new', 'other', 'gone']);
  const again = new Set(['same', 'never', 'gone']);
  const { bytes, names } = toDelta(before.resources, after, again);
  t.deepEqual(names, ['new', 'other', 'same', 'gone', 'never']);
  const { removedResources } = delta.responseDeserialize(Buffer.concat([...bytes]));
  t.deepEqual(removedResources, ['gone', 'never']);
});

test('the size of the largest response includes its nonce', (t) => {
  const snapshot = snapshotOf({ shop: Buffer.alloc(1000), mail: Buffer.alloc(3000) });
  const nonce = toStringField(5, '9'.repeat(18));
  const { bytes } = toSharedDelta(noResources, snapshot);
  const message = Buffer.concat([nonce, ...bytes]);
  t.is(largestResponseBytes(snapshot), message.length);
});
