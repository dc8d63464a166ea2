// The options of histograms and summaries in a mapping file. A rule's own come before the defaults
// of the file, and those before the common ones.
import type { MapReader } from './map-reader.ts';
import {
  defaultBuckets,
  defaultQuantiles,
  defaultSummaryAge,
  type ObserverOptions,
} from './metric-mapping.ts';

const types = ['histogram', 'summary'] as const;

/** For names that no rule matches. */
export function readDefaultObserver(defaults: MapReader): ObserverOptions {
  return toOptions(readType(defaults) ?? 'summary', [defaults]);
}

export function readObserver(rule: MapReader, defaults: MapReader): ObserverOptions {
  const own = readType(rule);
  const type = own ?? readType(defaults) ?? 'summary';
  const other = type === 'histogram' ? 'summary_options' : 'histogram_options';
  if (own !== undefined && rule.has(other)) {
    rule.error(other, `${other} is not for a ${type}`, 'remove it, or change observer_type');
  }
  return toOptions(type, [rule, defaults]);
}

/** `timer_type` is the older name. */
function readType(reader: MapReader): 'histogram' | 'summary' | undefined {
  const older = reader.word('timer_type', types);
  return reader.word('observer_type', types) ?? older;
}

function toOptions(type: 'histogram' | 'summary', readers: readonly MapReader[]): ObserverOptions {
  // All are read, whatever the type, so that each mistake is told.
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

/** `buckets` beside the options is the older place. */
function readBuckets(reader: MapReader): readonly number[] {
  const options = reader.map('histogram_options');
  const inner = options.numbers('buckets');
  const outer = reader.numbers('buckets');
  options.warnOfOthers();
  const [owner, list] = inner.length > 0 ? [options, inner] : [reader, outer];
  if (list.some((bound, index) => !(bound > (list[index - 1] ?? Number.NEGATIVE_INFINITY)))) {
    owner.error('buckets', 'the bounds do not grow', 'sort them, each once');
  }
  return list.filter((bound) => bound !== Number.POSITIVE_INFINITY);
}

const maxAgeBuckets = 100;

function readSummary(reader: MapReader) {
  const options = reader.map('summary_options');
  const inner = readQuantiles(options);
  const outer = readQuantiles(reader);
  const maxAgeMs = options.duration('max_age');
  const ageBuckets = options.number('age_buckets');
  if (ageBuckets !== undefined && !(Number.isInteger(ageBuckets) && ageBuckets >= 0)) {
    options.error('age_buckets', 'age_buckets is not a whole number');
  } else if ((ageBuckets ?? 0) > maxAgeBuckets) {
    options.error('age_buckets', `age_buckets is above ${maxAgeBuckets}`);
  }
  // How observations are collected is not for the file to say here.
  options.number('buf_cap');
  options.warnOfOthers();
  return { quantiles: inner.length > 0 ? inner : outer, maxAgeMs, ageBuckets };
}

/** The allowed errors are read and have no effect: the quantiles are exact. */
function readQuantiles(reader: MapReader): readonly number[] {
  return reader.maps('quantiles').map((item) => {
    const quantile = item.number('quantile') ?? Number.NaN;
    item.number('error');
    item.warnOfOthers();
    if (!(quantile >= 0 && quantile <= 1)) {
      item.error('quantile', 'a quantile is a number from 0 to 1');
    }
    return quantile;
  });
}
