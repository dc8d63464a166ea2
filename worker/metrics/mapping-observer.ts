// The options of histograms and summaries in a mapping file. Options of a rule take precedence over the defaults of the
// file, which take precedence over the built-in ones.
import type { MapReader } from '../../shared/rules/yaml/map-reader.ts';
import {
  defaultBuckets,
  defaultQuantiles,
  defaultSummaryAge,
  type ObserverOptions,
} from './metric-mapping.ts';

const types = ['histogram', 'summary'] as const;
const code = 'metric-mapping';

/** The keys of a rule or of the defaults that are read here. */
export const observerKeys: readonly string[] = [
  'observer_type',
  'timer_type',
  'histogram_options',
  'buckets',
  'summary_options',
  'quantiles',
];

/** The options for names that no rule matches. */
export function readDefaultObserver(defaults: MapReader | undefined): ObserverOptions {
  return toOptions(readType(defaults) ?? 'summary', [defaults]);
}

export function readObserver(rule: MapReader, defaults: MapReader | undefined): ObserverOptions {
  const own = readType(rule);
  const type = own ?? readType(defaults) ?? 'summary';
  const other = type === 'histogram' ? 'summary_options' : 'histogram_options';
  if (own !== undefined && rule.has(other)) {
    rule.error(code, other, `${other} is not for a ${type}`, 'remove it, or change observer_type');
  }
  return toOptions(type, [rule, defaults]);
}

/** `timer_type` is the older name. */
function readType(fields: MapReader | undefined): 'histogram' | 'summary' | undefined {
  const older = fields?.word('timer_type', types);
  return fields?.word('observer_type', types) ?? older;
}

function toOptions(
  type: 'histogram' | 'summary',
  given: readonly (MapReader | undefined)[],
): ObserverOptions {
  const readers = given.filter((fields) => fields !== undefined);
  // All are read, even if the type has no effect on them, to report each mistake.
  const buckets = readers.map(readBuckets).find((list) => list.length > 0) ?? defaultBuckets;
  const summaries = readers.map(readSummary);
  if (type === 'histogram') return { type, buckets };
  return {
    type,
    quantiles:
      summaries.find(({ quantiles }) => quantiles.length > 0)?.quantiles ?? defaultQuantiles,
    maxAgeMs: summaries.find(({ maxAgeMs }) => maxAgeMs)?.maxAgeMs ?? defaultSummaryAge.maxAgeMs,
    ageBuckets:
      summaries.find(({ ageBuckets }) => ageBuckets)?.ageBuckets ?? defaultSummaryAge.ageBuckets,
  };
}

/** `buckets` beside the options is the older position. */
function readBuckets(fields: MapReader): readonly number[] {
  const options = fields.map('histogram_options');
  const inner = options?.numbers('buckets') ?? [];
  const outer = fields.numbers('buckets');
  options?.warnOfOthers(['buckets']);
  const [owner, list] = options && inner.length > 0 ? [options, inner] : [fields, outer];
  if (list.some((bound, index) => !(bound > (list[index - 1] ?? Number.NEGATIVE_INFINITY)))) {
    owner.error(code, 'buckets', 'the bounds do not grow', 'sort them, each once');
  }
  return list.filter((bound) => bound !== Number.POSITIVE_INFINITY);
}

const maxAgeBuckets = 100;

function readSummary(fields: MapReader) {
  const options = fields.map('summary_options');
  const inner = options ? readQuantiles(options) : [];
  const outer = readQuantiles(fields);
  const maxAgeMs = options?.duration('max_age');
  const ageBuckets = options?.number('age_buckets');
  if (ageBuckets !== undefined && !(Number.isInteger(ageBuckets) && ageBuckets >= 0)) {
    options?.error(code, 'age_buckets', 'age_buckets is not a whole number');
  } else if ((ageBuckets ?? 0) > maxAgeBuckets) {
    options?.error(code, 'age_buckets', `age_buckets is above ${maxAgeBuckets}`);
  }
  // The file cannot determine how observations are collected.
  options?.number('buf_cap');
  options?.warnOfOthers(['quantiles', 'max_age', 'age_buckets', 'buf_cap']);
  return { quantiles: inner.length > 0 ? inner : outer, maxAgeMs, ageBuckets };
}

/** The allowed errors are parsed but have no effect: the quantiles are exact. */
function readQuantiles(fields: MapReader): readonly number[] {
  return fields.maps('quantiles').map((item) => {
    const quantile = item.number('quantile') ?? Number.NaN;
    item.number('error');
    item.warnOfOthers(['quantile', 'error']);
    if (!(quantile >= 0 && quantile <= 1)) {
      item.error(code, 'quantile', 'a quantile is a number from 0 to 1');
    }
    return quantile;
  });
}
