// Rules of every kind, and requests that use them, for the warm-up. They count under a separate prefix, in windows of a
// second and a minute, so that nothing remains.
import { randomBytes } from 'node:crypto';
import { plainShape } from '../../shared/rules/limit-shape.ts';
import type {
  RateLimitBlock,
  RuleDescriptor,
  RuleDocument,
} from '../../shared/rules/rule-document.ts';
import { noFlags } from '../../shared/rules/rule-keys.ts';
import { WireWriter } from '../listen/grpc/wire-format.ts';

const domain = 'ratelane_warm_up';
/** The number of different values: some counters stay within their limit and some exceed it. */
const values = 32;

export const sampleRules: RuleDocument = {
  file: domain,
  domain,
  position: undefined,
  descriptors: [
    toRule('second', { unit: 'second', requestsPerUnit: 100 }),
    toRule('minute', { unit: 'minute', requestsPerUnit: 5 }),
    toRule('path', { unit: 'minute', requestsPerUnit: 100 }, { value: '/api/*' }),
    toRule('shadow', { unit: 'minute', requestsPerUnit: 1 }, { shadowMode: true }),
    toRule('unlimited', { unlimited: true }),
    toRule('tenant', undefined, {
      value: 'a',
      descriptors: [toRule('user', { unit: 'minute', requestsPerUnit: 10 })],
    }),
  ],
};

/** An entry is `key` and `value`; a descriptor may be a refund. */
interface SampleDescriptor {
  readonly entries: readonly (readonly [key: string, value: string])[];
  readonly isNegativeHits?: boolean;
}

/** The next request, in rotation. */
function toDescriptors(index: number): readonly SampleDescriptor[] {
  const value = `${index % values}`;
  switch (index % 8) {
    case 0:
      return [
        { entries: [['minute', value]] },
        { entries: [['second', value]] },
        { entries: [['unlimited', value]] },
      ];
    case 1:
      return [{ entries: [['unlimited', value]] }];
    case 2:
      return [{ entries: [['unknown', value]] }];
    case 3:
      return [
        {
          entries: [
            ['tenant', 'a'],
            ['user', value],
          ],
        },
      ];
    case 4:
      return [{ entries: [['path', `/api/${value}`]] }, { entries: [['shadow', value]] }];
    case 5:
      return [{ entries: [['minute', value]], isNegativeHits: true }];
    default:
      return [{ entries: [['minute', value]] }];
  }
}

/** A request as protobuf and as JSON. */
export interface SampleRequest {
  readonly message: Buffer;
  readonly json: string;
}

/** Enough requests that each kind occurs with several values. */
export function createSampleRequests(): readonly SampleRequest[] {
  return Array.from({ length: 8 * values }, (_, index) => {
    const descriptors = toDescriptors(index);
    return { message: toMessage(descriptors), json: toJson(descriptors) };
  });
}

/** A request with one hit of one counter. */
export function createSampleOfOneCounter(): Buffer {
  return toMessage([{ entries: [['minute', '0']] }]);
}

/** Begins like the worker's own keys, as a store may allow no others. */
export function toSampleKeyPrefix(keyPrefix: string): string {
  return `${keyPrefix}${domain}_${randomBytes(6).toString('hex')}_`;
}

function toRule(
  key: string,
  limit: Partial<RateLimitBlock> | undefined,
  rest: Partial<RuleDescriptor> = {},
): RuleDescriptor {
  return {
    key,
    value: '',
    furtherLimits: [],
    untilMs: undefined,
    rateLimit: limit && {
      ...plainShape,
      unit: undefined,
      requestsPerUnit: 0,
      unlimited: false,
      name: '',
      replaces: [],
      ...limit,
    },
    ...noFlags,
    metadata: undefined,
    descriptors: [],
    position: undefined,
    ...rest,
  };
}

/** The fields are those of proto/envoy/service/ratelimit/v3/rls.proto. */
function toMessage(descriptors: readonly SampleDescriptor[]): Buffer {
  const writer = new WireWriter();
  writer.string(1, domain);
  for (const { entries, isNegativeHits } of descriptors) {
    const descriptor = writer.begin(2);
    for (const [key, value] of entries) {
      const entry = writer.begin(1);
      writer.string(1, key);
      writer.string(2, value);
      writer.end(entry);
    }
    writer.uint(4, isNegativeHits ? 1 : 0);
    writer.end(descriptor);
  }
  writer.uint(3, 1);
  return Buffer.from(writer.bytes.subarray(0, writer.length));
}

function toJson(descriptors: readonly SampleDescriptor[]): string {
  return JSON.stringify({
    domain,
    hitsAddend: 1,
    descriptors: descriptors.map(({ entries, isNegativeHits }) => ({
      entries: entries.map(([key, value]) => ({ key, value })),
      isNegativeHits: isNegativeHits === true,
    })),
  });
}
