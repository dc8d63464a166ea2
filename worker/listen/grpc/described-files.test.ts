import { loadFileDescriptorSetFromBuffer, type MessageTypeDefinition } from '@grpc/proto-loader';
import test from 'ava';
import { toFieldHead } from '../../../shared/wire/field-bytes.ts';
import { describeProtos, loadProtos } from '../../../shared/wire/protos.ts';
import { repairDescriptions } from './described-files.ts';

const protos = loadProtos();
const files = filesOf(repairDescriptions(describeProtos()));

function filesOf(definition: object): Buffer[] {
  const [entry] = Object.values(definition).filter((value) => 'fileDescriptorProtos' in value);
  return (entry as { fileDescriptorProtos: Buffer[] }).fileDescriptorProtos;
}

test('types are named from the root, and every file names those that it imports', (t) => {
  const service = files
    .map((bytes) => bytes.toString('latin1'))
    .find((text) => text.includes('RateLimitService'));
  for (const type of [
    '.envoy.extensions.common.ratelimit.v3.RateLimitDescriptor',
    '.envoy.config.core.v3.HeaderValue',
    '.envoy.service.ratelimit.v3.RateLimitResponse.Code',
    '.envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit',
    '.google.protobuf.Struct',
  ]) {
    t.true(service?.includes(type), type);
  }
  for (const file of ['envoy_extensions_common_ratelimit_v3', 'google_protobuf']) {
    t.true(service?.includes(`${file}.proto`), file);
  }
});

test('the entries of maps are named after their fields, and fields have JSON names', (t) => {
  const text = Buffer.concat(files).toString('latin1');
  t.true(text.includes('.grpc.health.v1.HealthListResponse.StatusesEntry'));
  t.true(text.includes('durationUntilReset'));
  t.true(text.includes('duration_until_reset'));
});

test('a repaired description still describes the same messages', (t) => {
  const set = files.flatMap((bytes) => [toFieldHead(1, bytes.length), bytes]);
  const definition = loadFileDescriptorSetFromBuffer(Buffer.concat(set));
  t.true('envoy.service.ratelimit.v3.RateLimitService' in definition);
  const list = definition['grpc.health.v1.HealthListResponse'] as MessageTypeDefinition<
    object,
    object
  >;
  // On the wire, a map is a list of its entries.
  const bytes = list.serialize({ statuses: [{ key: 'one', value: { status: 1 } }] });
  const { responseDeserialize } = protos.healthService.List;
  t.like(responseDeserialize(bytes), { statuses: { one: { status: 1 } } });
});
