// The scenarios: the rules for every service under test, the requests of each scenario, and the environment. How they
// are measured is defined elsewhere.
import { codes } from '../../worker/decision/message.ts';

export interface Scenario {
  readonly name: string;
  /** The key of each descriptor of a request. */
  readonly descriptorKeys: readonly string[];
  /** The number of different values per descriptor. */
  readonly distinctKeys: number;
  /** A new traceparent and x-request-id in each request. */
  readonly hasTrace: boolean;
  readonly isTls: boolean;
  /** The store in which hits are counted, if one is used. */
  readonly store: 'redis' | 'memcached';
  readonly expectedCode: number;
  /** In addition to the environment of every service. */
  readonly environment: Readonly<Record<string, string>>;
  /** Whether it needs settings that other services do not have. */
  readonly isOursAlone: boolean;
}

const countedKeys = ['key_b', 'key_c', 'key_d', 'key_e'];

export const rules = `domain: bench
descriptors:
  - {key: key_a, rate_limit: {unlimited: true}}
${countedKeys
  .map(
    (key) => `  - key: ${key}
    rate_limit: {unit: minute, requests_per_unit: 1000000000}
`,
  )
  .join('')}  - key: over
    rate_limit: {unit: day, requests_per_unit: 1}
`;

const basis: Omit<Scenario, 'name'> = {
  descriptorKeys: ['key_b'],
  distinctKeys: 10_000,
  hasTrace: false,
  isTls: false,
  store: 'redis',
  expectedCode: codes.ok,
  environment: {},
  isOursAlone: false,
};

export const scenarios: readonly Scenario[] = [
  { ...basis, name: 'unlimited', descriptorKeys: ['key_a'] },
  {
    ...basis,
    name: 'over-limit-local-cache',
    descriptorKeys: ['over'],
    distinctKeys: 1,
    expectedCode: codes.overLimit,
    environment: { LOCAL_CACHE_SIZE_IN_BYTES: String(1 << 20) },
  },
  { ...basis, name: 'memory-10k-keys', environment: { BACKEND_TYPE: 'memory' }, isOursAlone: true },
  { ...basis, name: 'redis-1-key', distinctKeys: 1 },
  { ...basis, name: 'redis-10k-keys' },
  { ...basis, name: 'redis-10k-keys-trace', hasTrace: true },
  {
    ...basis,
    name: 'redis-10k-keys-trace-window',
    hasTrace: true,
    environment: { REDIS_PIPELINE_WINDOW: '300us' },
  },
  { ...basis, name: 'redis-200k-keys', distinctKeys: 200_000 },
  { ...basis, name: 'redis-4-descriptors', descriptorKeys: countedKeys },
  { ...basis, name: 'memcached-10k-keys', store: 'memcached' },
  { ...basis, name: 'unlimited-tls', descriptorKeys: ['key_a'], isTls: true },
];

export function findScenario(name: string): Scenario {
  const scenario = scenarios.find((candidate) => candidate.name === name);
  if (scenario === undefined) {
    const names = scenarios.map((candidate) => candidate.name).join(', ');
    throw new Error(`no scenario ${name}; there are ${names}`);
  }
  return scenario;
}
