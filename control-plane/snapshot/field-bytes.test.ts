import test from 'ava';
import { loadDiscoveryProtos } from '../../shared/wire/discovery.ts';
import { toStringField } from './field-bytes.ts';

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
