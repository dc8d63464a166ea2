// Versions that are derived from content, and protobuf fields.
import test from 'ava';
import { loadDiscoveryProtos } from '../../../shared/wire/discovery.ts';
import { createResource, createSnapshot, toStringField } from './snapshot.ts';

test('equal content has an equal version, whatever the order of making', (t) => {
  const a = createResource('a', Buffer.from('1'));
  const b = createResource('b', Buffer.from('2'));
  const one = createSnapshot([a, b]);
  const other = createSnapshot([createResource('b', Buffer.from('2')), a]);
  t.is(one.version, other.version);
  t.deepEqual([...one.resources.keys()], ['a', 'b']);
  t.deepEqual([...other.resources.keys()], ['a', 'b']);
});

test('other content, another name or a missing resource is another version', (t) => {
  const config = Buffer.from('1');
  const versions = [
    createSnapshot([]),
    createSnapshot([createResource('a', config)]),
    createSnapshot([createResource('b', config)]),
    createSnapshot([createResource('a', Buffer.from('2'))]),
    createSnapshot([createResource('a', config), createResource('b', config)]),
  ].map(({ version }) => version);
  t.is(new Set(versions).size, versions.length);
  for (const version of versions) t.regex(version, /^[0-9a-f]{32}$/);
});

test('a resource name that occurs twice is a defect', (t) => {
  const twice = [createResource('a', Buffer.from('1')), createResource('a', Buffer.from('2'))];
  t.throws(() => createSnapshot(twice), { message: 'two resources of a snapshot have one name' });
});

const { StreamAggregatedResources } = loadDiscoveryProtos().aggregated;

test('a text of any length is read by the protobuf library', (t) => {
  for (const length of [0, 1, 126, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]) {
    const text = 'x'.repeat(length);
    t.is(StreamAggregatedResources.responseDeserialize(toStringField(1, text)).versionInfo, text);
  }
});

test('a length has as few bytes as it can', (t) => {
  t.deepEqual(
    [0, 1, 127, 128, 16_383, 16_384].map((length) => toStringField(1, 'x'.repeat(length)).length),
    [0, 3, 129, 131, 16_386, 16_388],
  );
});
