import { loadSync } from '@grpc/proto-loader';
import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { ownPath } from '../own-files.ts';
import { loadProtos, protoFiles } from './protos.ts';

interface Numbered {
  readonly name: string;
  readonly number: number;
}

interface Described {
  readonly type: { readonly field?: readonly Numbered[]; readonly value?: readonly Numbered[] };
}

const protos = loadProtos();
const definition = loadSync(protoFiles, { includeDirs: [ownPath('proto')], keepCase: true });

// Names and numbers are a public contract: programs that compiled the messages elsewhere must understand ours.
testLines(test, new URL('protos.txt', import.meta.url), (given) => {
  const { type } = definition[given] as unknown as Described;
  const numbers = [...(type.field ?? []), ...(type.value ?? [])];
  return numbers.map(({ name, number }) => `${name} ${number}`).join(', ');
});

test('methods have the public paths', (t) => {
  t.is(
    protos.rateLimitService.ShouldRateLimit.path,
    '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  );
  t.is(protos.healthService.Check.path, '/grpc.health.v1.Health/Check');
  t.true(protos.healthService.Watch.responseStream);
  t.is(protos.healthService.List.path, '/grpc.health.v1.Health/List');
  t.is(
    protos.reflectionService.ServerReflectionInfo.path,
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  );
});

test('a configuration resource survives encoding and decoding', (t) => {
  const config = {
    name: 'n',
    domain: 'd',
    descriptors: [
      {
        key: 'k',
        value: 'v*',
        rateLimit: {
          unit: 7,
          requestsPerUnit: 4_294_967_295,
          unlimited: false,
          name: 'r',
          replaces: [{ name: 'other' }],
        },
        descriptors: [],
        shadowMode: true,
        detailedMetric: false,
        quotaMode: true,
        metadata: {
          fields: {
            a: {
              kind: 'structValue',
              structValue: { fields: { b: { kind: 'numberValue', numberValue: 1 } } },
            },
          },
        },
      },
    ],
  };
  t.deepEqual(protos.rateLimitConfig.deserialize(protos.rateLimitConfig.serialize(config)), config);
});
