// The keys of a file of rule tests, one row each. The rows define which keys are allowed where, the table in the guide,
// and the JSON Schema for editors. test-file.ts reads the values.

import { workerTable } from '../../../../worker/settings/table.ts';
import {
  createDocumentKeys,
  type JsonSchema,
  type SchemaRow,
} from '../../schema/document-schema.ts';

export type TestSection = 'file' | 'test' | 'request' | 'status';

/** The start of a week, day and hour under the default settings. */
export const defaultClock = '2026-01-01T00:00:00Z';
/** The most requests that one row of a test can stand for. */
export const mostTimes = 100_000;

/** The parts of an answer that a test may expect, in the order in which they are reported. */
export const expectedKeys = ['code', 'remaining', 'reset', 'rule', 'metric_key'] as const;
export type ExpectedKey = (typeof expectedKeys)[number];

/** The statistics of a metric key. */
export const statisticNames = [
  'total_hits',
  'within_limit',
  'near_limit',
  'over_limit',
  'over_limit_with_local_cache',
  'shadow_mode',
  'total_negative_hits',
] as const;

/** The settings of a worker that change its decisions. */
export const settingNames: readonly string[] = [
  ...Object.values(workerTable.limits.settings),
  workerTable.config.settings.mergeDomains,
  workerTable.stats.settings.sanitizeDots,
].map(({ names }) => names[0]);

const text = { type: ['string', 'integer', 'boolean'] };
const entries: JsonSchema = { type: 'object', minProperties: 1, additionalProperties: text };
const descriptor: JsonSchema = {
  anyOf: [entries, { type: 'array', minItems: 1, items: entries }],
};
const count: JsonSchema = { type: ['integer', 'null'], minimum: 0 };

export const testKeys = [
  {
    name: 'rules',
    sections: ['file'],
    type: 'other',
    isRequired: true,
    schema: {
      anyOf: [
        { type: 'string' },
        { type: 'object' },
        { type: 'array', minItems: 1, items: { type: ['string', 'object'] } },
      ],
    },
    meaning:
      'a file or folder of rules, from where this file is; or a whole rules document; or a list of these; required',
  },
  {
    name: 'worker',
    sections: ['file'],
    type: 'other',
    schema: {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: Object.fromEntries(
        settingNames.map((name) => [name, { type: ['string', 'number', 'boolean'] }]),
      ),
    },
    meaning: 'settings of the worker that decides, by their names; without it, the defaults',
  },
  {
    name: 'tests',
    sections: ['file'],
    type: 'list',
    holds: 'test',
    isRequired: true,
    items: [1, 100_000],
    meaning: 'the tests; each begins with empty counters; required',
  },
  {
    name: 'name',
    sections: ['test'],
    type: 'text',
    isRequired: true,
    meaning: 'the claim of the test, as a sentence; required',
  },
  {
    name: 'domain',
    sections: ['test', 'request'],
    type: 'text',
    meaning: 'the domain of the requests; of a test, for all that name none',
  },
  {
    name: 'clock',
    sections: ['test'],
    type: 'text',
    meaning: `when the test begins, such as \`2026-11-24T18:00:00Z\`; default \`${defaultClock}\``,
  },
  {
    name: 'requests',
    sections: ['test'],
    type: 'list',
    holds: 'request',
    meaning: 'the requests, in this order, and their expected answers',
  },
  {
    name: 'columns',
    sections: ['test'],
    type: 'other',
    schema: { type: ['array', 'null'], minItems: 1, items: { type: 'string' } },
    meaning:
      'in place of `requests`: what the cells of each row are, a key of a request or, as `customer=`, the value of an entry',
  },
  {
    name: 'rows',
    sections: ['test'],
    type: 'other',
    schema: {
      type: ['array', 'null'],
      items: { type: 'array', items: { type: ['string', 'number', 'boolean', 'null'] } },
    },
    meaning: 'a list of requests, each a list of cells; an entry without a value is left out',
  },
  {
    name: 'statistics',
    sections: ['test'],
    type: 'other',
    schema: {
      type: ['object', 'null'],
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(statisticNames.map((name) => [name, count])),
      },
    },
    meaning: 'after the last request: by metric key, the statistics such as `over_limit: 1`',
  },
  {
    name: 'descriptor',
    sections: ['request'],
    type: 'other',
    schema: descriptor,
    meaning:
      'its entries, in their order, such as `{plan: free, customer: ada}`; a list of such mappings where a key comes twice',
  },
  {
    name: 'descriptors',
    sections: ['request'],
    type: 'other',
    schema: { type: ['array', 'null'], minItems: 1, items: descriptor },
    meaning: 'in place of `descriptor`, for several in one request',
  },
  {
    name: 'at',
    sections: ['request'],
    type: 'text',
    meaning: 'how long after `clock`, such as `90s`, or a time; default: when the one before was',
  },
  {
    name: 'hits',
    sections: ['request'],
    type: 'other',
    schema: { type: ['integer', 'null'] },
    meaning:
      'how many hits, for each descriptor; 0 only reads, a negative number refunds; default 1',
  },
  {
    name: 'times',
    sections: ['request'],
    type: 'count',
    min: 1,
    max: mostTimes,
    meaning: 'how often the request is sent; expectations are for the last answer; default 1',
  },
  {
    name: 'code',
    sections: ['request', 'status'],
    type: 'text',
    words: ['OK', 'OVER_LIMIT'],
    meaning: '`OK` or `OVER_LIMIT`; of a request, that of the whole answer',
  },
  {
    name: 'remaining',
    sections: ['request', 'status'],
    type: 'other',
    schema: { anyOf: [count, { enum: ['none', 'unlimited'] }] },
    meaning: 'how many hits are left; `none` where no limit applies, or `unlimited`',
  },
  {
    name: 'reset',
    sections: ['request', 'status'],
    type: 'text',
    meaning: 'how long until the window ends, such as `60s`; `none` without a limit',
  },
  {
    name: 'rule',
    sections: ['request', 'status'],
    type: 'text',
    meaning:
      'the rule whose limit applies: the domain and, for each level, the key with `_` and the value, if it has one, joined by dots; or `none`',
  },
  {
    name: 'metric_key',
    sections: ['request', 'status'],
    type: 'text',
    meaning: 'under which name the hits are in the statistics; or `none`',
  },
  {
    name: 'statuses',
    sections: ['request'],
    type: 'list',
    holds: 'status',
    meaning: 'for several descriptors: the expectations for each, in their order',
  },
] as const satisfies readonly SchemaRow<TestSection>[];

export const { keysAt: testKeysAt, formatSchema: formatTestSchema } =
  createDocumentKeys<TestSection>({
    title: 'Tests of rate limit rules',
    rows: testKeys,
    root: 'file',
  });
