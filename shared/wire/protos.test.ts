import test from 'ava';
import { describeProtos, loadProtos } from './protos.ts';

interface Described {
  readonly type: { readonly field: readonly { readonly name: string; readonly number: number }[] };
}

interface DescribedEnum {
  readonly type: { readonly value: readonly { readonly name: string; readonly number: number }[] };
}

const protos = loadProtos();
const definition = describeProtos();

// Names and numbers are a public contract: who has compiled the messages elsewhere must understand
// ours.
const messages: Record<string, Record<string, number>> = {
  'envoy.service.ratelimit.v3.RateLimitRequest': { domain: 1, descriptors: 2, hits_addend: 3 },
  'envoy.service.ratelimit.v3.RateLimitResponse': {
    overall_code: 1,
    statuses: 2,
    response_headers_to_add: 3,
    request_headers_to_add: 4,
    raw_body: 5,
    dynamic_metadata: 6,
    quota: 7,
  },
  'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor': {
    entries: 1,
    limit: 2,
    hits_addend: 3,
    is_negative_hits: 4,
  },
  'envoy.config.core.v3.HeaderValue': { key: 1, value: 2, raw_value: 3 },
  'grpc.health.v1.HealthCheckRequest': { service: 1 },
  'grpc.health.v1.HealthCheckResponse': { status: 1 },
  'grpc.health.v1.HealthListResponse': { statuses: 1 },
  'ratelimit.config.ratelimit.v3.RateLimitConfig': { name: 1, domain: 2, descriptors: 3 },
  'ratelimit.config.ratelimit.v3.RateLimitDescriptor': {
    key: 1,
    value: 2,
    rate_limit: 3,
    descriptors: 4,
    shadow_mode: 5,
    detailed_metric: 6,
    quota_mode: 7,
    metadata: 8,
  },
  'ratelimit.config.ratelimit.v3.RateLimitPolicy': {
    unit: 1,
    requests_per_unit: 2,
    unlimited: 3,
    name: 4,
    replaces: 5,
  },
};

for (const [name, fields] of Object.entries(messages)) {
  test(`${name} has the public fields`, (t) => {
    const described = definition[name] as unknown as Described;
    const numbers = described.type.field.map((field) => [field.name, field.number]);
    t.deepEqual(Object.fromEntries(numbers), fields);
  });
}

test('units have the public numbers, which differ between the two enums', (t) => {
  const numbersOf = (name: string) => {
    const described = definition[name] as unknown as DescribedEnum;
    return Object.fromEntries(described.type.value.map((value) => [value.name, value.number]));
  };
  const common = { UNKNOWN: 0, SECOND: 1, MINUTE: 2, HOUR: 3, DAY: 4, MONTH: 5, YEAR: 6 };
  t.deepEqual(numbersOf('envoy.type.v3.RateLimitUnit'), common);
  t.deepEqual(numbersOf('ratelimit.config.ratelimit.v3.RateLimitUnit'), { ...common, WEEK: 7 });
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

test('a configuration resource survives the way over the wire', (t) => {
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
