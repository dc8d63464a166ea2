// Every statistic of the worker by name, with its meaning. A test compares the list with the names of real workers.

export interface CatalogueEntry {
  /** Words in <> are replaced by texts of the configuration or the request; several names form a family. */
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'timer';
  readonly meaning: string;
  /**
   * Whether the statistic is ours rather than the reference's: it is then exposed from the start, with its description.
   */
  readonly isOwn: boolean;
}

const rule = 'ratelimit.service.rate_limit.<metric key>';

export const catalogue: readonly CatalogueEntry[] = [
  counter(
    `${rule}.total_hits`,
    'Hits of a rule. The metric key is the domain, and key or key_value of each level',
  ),
  counter(`${rule}.over_limit`, 'Hits over the limit'),
  counter(`${rule}.near_limit`, 'Hits between NEAR_LIMIT_RATIO of the limit and the limit'),
  counter(`${rule}.within_limit`, 'Hits of requests that passed'),
  counter(
    `${rule}.over_limit_with_local_cache`,
    'Part of over_limit, answered by the local cache without asking the store',
  ),
  counter(`${rule}.shadow_mode`, 'Decisions over the limit that shadow mode let pass'),
  counter(`${rule}.total_negative_hits`, 'Refunded hits'),
  counter(
    'ratelimit.service.rate_limit.<domain>.domain_not_found',
    'Descriptors of a domain that has no rules',
  ),
  ownCounter(
    'ratelimit.service.no_match.<domain>',
    'Descriptors that match no rule: they pass. `/unmatched` on the debug port lists them',
  ),
  ownCounter(
    'ratelimit.service.folded_metric_names',
    'Names not counted separately, because there are already RUNTIME_METRIC_NAMES_MAX',
  ),
  counter('ratelimit.service.config_load_success', 'Loads of rules that took effect'),
  counter('ratelimit.service.config_load_error', 'Loads with errors: the rules in force stay'),
  counter(
    'ratelimit.service.global_shadow_mode',
    'Requests over the limit that SHADOW_MODE let pass',
  ),
  counter(
    'ratelimit.service.call.should_rate_limit.redis_error',
    'Decisions that failed because of the store',
  ),
  counter(
    'ratelimit.service.call.should_rate_limit.service_error',
    'Decisions that failed for another reason, such as an empty domain or no rules',
  ),
  ownCounter(
    'ratelimit.service.call.should_rate_limit.undecodable',
    'Requests that could not be read: too large, or with bytes that are not UTF-8',
  ),
  ownCounter(
    'ratelimit.failure_mode.<mode>',
    'Decisions that were answered without the store, by KVSTORE_FAILURE_MODE',
  ),
  ownCounter('ratelimit.recording.written', 'Decisions recorded in the file of RECORD_DECISIONS'),
  ownCounter(
    'ratelimit.recording.dropped',
    'Decisions missing in this file: above RECORD_DECISIONS_MAX_PER_SECOND, or not written',
  ),
  counter('ratelimit_server.<method>.total_requests', 'gRPC calls, such as ShouldRateLimit'),
  timer('ratelimit_server.<method>.response_time', 'Milliseconds of a gRPC call'),
  ownCounter(
    'ratelimit.grpc.cx_refused',
    'gRPC connections that were closed because there were too many, see the log',
  ),
  ownCounter(
    'ratelimit.open_files_exhausted',
    'Seconds in which no more files and connections could be opened, so that new connections were closed unanswered',
  ),
  ownGauge('ratelimit.lease.open', 'Counters that this worker has a lease of'),
  ownGauge('ratelimit.lease.unused_hits', 'Hits of leases that are counted but not yet used'),
  ownCounter('ratelimit.lease.decisions', 'Decisions that were answered from a lease'),
  ownGauge('ratelimit.quota.streams', 'Open streams of the quota service'),
  ownGauge('ratelimit.quota.buckets', 'Buckets that these report'),
  ownCounter('ratelimit.quota.reports', 'Buckets in usage reports'),
  ownCounter('ratelimit.quota.assignments', 'Assignments sent'),
  ownCounter('ratelimit.quota.abandoned', 'Buckets abandoned after ten idle reports'),
  ownCounter('ratelimit.quota.refused', 'Streams ended because of invalid messages'),
  ownCounter('ratelimit.quota.store_error', 'Counts that failed in the store'),
  ownGauge(
    'ratelimit.agreement',
    'Hash of the settings that all workers sharing a store must have in common',
  ),
  ownGauge(
    'ratelimit.<store>.breaker.open',
    'Unreachable servers of the store, which are not asked',
  ),
  ownCounter(
    'ratelimit.<store>.breaker.opened',
    'How often a server of the store became unreachable',
  ),
  ownCounter('ratelimit.<store>.breaker.closed', 'How often one could be reached again'),
  ownGauge('ratelimit.<store>.clock_offset_ms', "How far this clock is ahead of the store's"),
  gauge(
    'ratelimit.<pool>.cx_active',
    'Open connections to the store; the pools are redis_pool and redis_per_second_pool',
  ),
  counter('ratelimit.<pool>.cx_total', 'Connections opened'),
  counter('ratelimit.<pool>.cx_local_close', 'Connections closed'),
  counter(
    'ratelimit.memcache.multiget.__code=<outcome>',
    'Decisions whose counters could be read, or not',
  ),
  counter('ratelimit.memcache.keys_requested', 'Counters asked for'),
  counter('ratelimit.memcache.keys_found', 'Counters found'),
  counter(
    'ratelimit.memcache.increment.__code=<outcome>',
    'Counters incremented, missing, or failed',
  ),
  counter(
    'ratelimit.memcache.add.__code=<outcome>',
    'Counters created, already created by another worker, or failed',
  ),
  gauge(
    'ratelimit.localcache.<count>',
    'The local cache of keys over their limit (LOCAL_CACHE_SIZE_IN_BYTES): entryCount, hitCount, missCount, lookupCount, expiredCount, evacuateCount, overwriteCount, and averageAccessTime, the Unix time of the last lookup',
  ),
  ownGauge('ratelimit.xds.connected', '1 while a stream to the management server is open'),
  ownCounter('ratelimit.xds.responses', 'Responses of the management server'),
  ownCounter('ratelimit.xds.acks', 'Responses accepted'),
  ownCounter(
    'ratelimit.xds.nacks',
    'Responses refused, with the reason in the log and on `/status`',
  ),
  ownCounter('ratelimit.xds.reconnects', 'Attempts to connect after the first'),
  counter('runtime.load_attempts', 'Loads of rules files'),
  counter('runtime.load_failures', 'Files that could not be read'),
  gauge('runtime.num_values', 'Rules files'),
  counter(
    'certs.load_attempts',
    "Loads of the gRPC port's certificates, by each process: at the start and whenever their files have changed",
  ),
  counter('certs.load_failures', 'The failed certs.load_attempts: the certificates in use stay'),
  gauge('certs.num_values', 'Files of these certificates'),
  ownGauge(
    'ratelimit.certificate.<port>.not_after_timestamp_seconds',
    'When the first certificate expires that a port uses (`grpc`, `http`, `debug`), or that is presented to the `store`, the `per_second_store` or management servers (`xds`)',
  ),
  ownGauge(
    'ratelimit.certificate.<port>.renewal_refused',
    '1 while the files of these certificates have changed and cannot be used: those in use stay',
  ),
  ownGauge('ratelimit.processes.serving', 'Processes that decide (WORKER_PROCESSES)'),
  ownCounter('ratelimit.processes.replaced', 'Processes that ended and were replaced'),
  ownGauge('ratelimit.node.rss_bytes', 'Resident memory of the worker'),
  ownGauge('ratelimit.node.heap_used_bytes', 'Memory of JavaScript values that are in use'),
  ownGauge('ratelimit.node.heap_total_bytes', 'Memory taken for JavaScript values'),
  ownGauge('ratelimit.node.external_bytes', 'Memory beside it, such as buffers'),
  ownGauge('ratelimit.node.uptime_seconds', 'Time since the start'),
  ownGauge(
    'ratelimit.node.event_loop_busy_percent',
    'Share of the last minute in which the event loop was busy',
  ),
  ownGauge(
    'ratelimit.node.event_loop_delay_p99_us',
    'Delay of the event loop in the last minute, in microseconds: the 99th percentile',
  ),
  ownGauge('ratelimit.node.event_loop_delay_max_us', 'The longest of these delays'),
  ownCounter(
    'ratelimit.node.dropped_metric_lines',
    'Lines of statistics that were lost: the receiver could not be reached or was too slow',
  ),
];

/** The entry of a metric that the reference does not have. */
export function findOwn(metric: string): CatalogueEntry | undefined {
  // There may be very many of these names.
  if (metric.startsWith('ratelimit.service.rate_limit.')) return undefined;
  return ownEntries.find(({ pattern }) => pattern.test(metric))?.entry;
}

const ownEntries = catalogue
  .filter(({ isOwn }) => isOwn)
  .map((entry) => ({
    entry,
    pattern: new RegExp(
      `^${entry.name
        .replaceAll('.', '\\.')
        .replace(/<domain>/g, '.+')
        .replace(/<\w+>/g, '[^.]+')}$`,
    ),
  }));

function counter(name: string, meaning: string): CatalogueEntry {
  return { name, kind: 'counter', meaning, isOwn: false };
}

function gauge(name: string, meaning: string): CatalogueEntry {
  return { name, kind: 'gauge', meaning, isOwn: false };
}

function timer(name: string, meaning: string): CatalogueEntry {
  return { name, kind: 'timer', meaning, isOwn: false };
}

function ownCounter(name: string, meaning: string): CatalogueEntry {
  return { ...counter(name, meaning), isOwn: true };
}

function ownGauge(name: string, meaning: string): CatalogueEntry {
  return { ...gauge(name, meaning), isOwn: true };
}
