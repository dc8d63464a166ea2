// For every difference in worker/docs/differences.md a test that shows it. Operators read that page; this is
// for those who change what it says.

export interface DifferenceProof {
  /** The difference, as the page has it. */
  readonly here: string;
  /** From the root of the project. */
  readonly file: string;
  /** A test's title or a part of it, the id of a recorded case, or the message that a wrong document gets. */
  readonly text: string;
}

export const differenceProofs: readonly DifferenceProof[] = [
  {
    here: '`share_threshold` is only for values that end in `*`',
    file: 'test/fixtures/rules/bad/share-middle-star.txt',
    text: 'share_threshold can only be used with wildcard values',
  },
  {
    here: 'A shared metric key has the part before the `*`',
    file: 'test/conformance/cases/own_features.json',
    text: 'share-metric-prefix',
  },
  {
    here: 'A missing `requests_per_unit` in YAML is an error; over xDS it is 0',
    file: 'test/fixtures/rules/bad/requests-missing.txt',
    text: 'requests_per_unit is missing',
  },
  {
    here: 'All problems of all files are told at once, each with file, line and column',
    file: 'shared/rules/document/document.test.ts',
    text: 'is refused with the whole text that stands beside it',
  },
  {
    here: 'In a mapping an explicit key has precedence over `<<`, wherever that stands',
    file: 'shared/rules/document/document.test.ts',
    text: 'an explicit key has precedence over a merged one, wherever it stands',
  },
  {
    here: '`unit_multiplier`, `algorithm`, `burst`, `count_over_limit`, `rate_limits`',
    file: 'worker/decision/limit-algorithms.test.ts',
    text: 'a list answers with the limit that hurts most, counts each limit apart and the rule once',
  },
  {
    here: 'Metadata of a rule is kept when its metric key depends on the request',
    file: 'shared/rules/lookup/rule-tree.test.ts',
    text: 'what stands on the descriptor is part of the limit',
  },
  {
    here: 'Files are `*.yaml` and `*.yml`; any other file is named once in a warning',
    file: 'test/feature/rules/file-source.test.ts',
    text: 'other files are named once in a warning and are not read',
  },
  {
    here: 'A file that cannot be read keeps the rules that were there',
    file: 'test/feature/rules/file-source.test.ts',
    text: 'a file that cannot be read keeps the rules that were there',
  },
  {
    here: 'A folder of rules that is gone keeps the rules that were there',
    file: 'test/feature/rules/file-source.test.ts',
    text: 'a folder that is removed keeps its last rules, and coming back it is loaded',
  },
  {
    here: "A folder that has no rules file any more keeps the rules that were there; the configuration's component of health is unhealthy then",
    file: 'test/feature/rules/file-source.test.ts',
    text: 'a folder that becomes empty keeps the rules that were there, and says so once',
  },
  {
    here: 'A first load that fails is no initial configuration: the gRPC and HTTP ports open after the first good one (unless `FORCE_START_WITHOUT_INITIAL_CONFIG`)',
    file: 'test/e2e/mistakes.test.ts',
    text: 'mistake 1: an unknown key',
  },
  {
    here: "Changes in subfolders and files renamed away are noticed, and a ConfigMap's swap is one load",
    file: 'test/feature/rules/file-source.test.ts',
    text: 'the swap of a ConfigMap is one good load, and its folders are not loaded twice',
  },
  {
    here: '`RUNTIME_SUBDIRECTORY` may be unset',
    file: 'test/feature/rules/file-source.test.ts',
    text: 'the folder is root, subdirectory and app directory, of which some may be empty',
  },
  {
    here: '`is_negative_hits` is a refund, never below 0',
    file: 'test/conformance/cases/own_features.json',
    text: 'negative-floor',
  },
  {
    here: 'A limit in the request with an unknown unit fails the call',
    file: 'worker/decision/should-rate-limit.test.ts',
    text: 'a limit in the request with unit',
  },
  {
    here: 'Hits above 2^63-1 fail the call',
    file: 'worker/decision/should-rate-limit.test.ts',
    text: 'more hits than a store can count fail the call',
  },
  {
    here: 'A request has at most `REQUEST_MAX_DESCRIPTORS` descriptors and `REQUEST_MAX_ENTRIES` entries',
    file: 'test/feature/settings/serving.test.ts',
    text: 'a request that asks about more is refused',
  },
  {
    here: 'Requests are at most 512 KiB, bodies of `/json` too',
    file: 'worker/listen/http.test.ts',
    text: 'a body that is too large is refused without being read to its end',
  },
  {
    here: "Values in the client's `-descriptors` may have equals signs",
    file: 'worker/client/arguments.test.ts',
    text: 'a value may have equals signs',
  },
  {
    here: "A decision never takes longer than `KVSTORE_TIMEOUT` or the caller's own deadline",
    file: 'test/feature/store/outage.test.ts',
    text: 'a stopped and continued server: errors while it is silent, OK soon after',
  },
  {
    here: 'With `KVSTORE_FAILURE_MODE` a decision has an answer when the store fails, and a worker starts without it',
    file: 'test/feature/store/failure-mode.test.ts',
    text: 'a worker started without its Redis serves at once',
  },
  {
    here: 'While the store is known to be away a decision fails at once',
    file: 'test/feature/store/outage.test.ts',
    text: 'a killed and restarted server: errors while it is away, OK soon after',
  },
  {
    here: '`EXPIRE` is sent when a counter is new',
    file: 'test/feature/store/refusals.test.ts',
    text: 'the expiry is sent once for a counter, and again when the counter is new',
  },
  {
    here: '`KVSTORE_POOL_ON_EMPTY_BEHAVIOR` takes CREATE, the default, and ERROR',
    file: 'test/feature/store/pool.test.ts',
    text: 'ERROR: a decision fails when it has waited, and those in flight stay',
  },
  {
    here: 'TLS files of the store are read again at each connection',
    file: 'test/feature/store/tls.test.ts',
    text: 'TLS: a renewed client certificate is presented from the next connection on',
  },
  {
    here: 'A decision on a cluster is one batch for each node',
    file: 'test/feature/store/cluster.test.ts',
    text: 'a request over several nodes is counted on each',
  },
  {
    here: "This clock is compared with the store's",
    file: 'test/feature/store/clock.test.ts',
    text: 'one server',
  },
  {
    here: 'A store must be named; `BACKEND_TYPE=memory` counts in process',
    file: 'test/e2e/mistakes.test.ts',
    text: 'no store named at all: both ways out are told',
  },
  {
    here: '`KVSTORE_STARTUP_MAX_INTERVAL` is 1.5s unless it is set, so that a worker serves soon after its store is there',
    file: 'worker/counters/redis/first-connection.test.ts',
    text: 'a start notices within 1.5 s that the store is there',
  },
  {
    here: 'With a memory cache the worker is healthy',
    file: 'test/feature/memcached/worker.test.ts',
    text: 'a worker without its memory cache is healthy and lets everything through',
  },
  {
    here: 'A key that a memory cache does not take fails its call, naming the descriptor',
    file: 'test/feature/memcached/worker.test.ts',
    text: 'a key that is too long fails its call, naming the descriptor, and no other',
  },
  {
    here: 'Counters of a month and more live that long in a memory cache',
    file: 'test/feature/memcached/counting.test.ts',
    text: 'on either side of 30 days',
  },
  {
    here: 'A counter in a memory cache lives for a second more than its window and the jitter',
    file: 'test/feature/memcached/counting.test.ts',
    text: 'a counter outlives its window by a second',
  },
  {
    here: 'A worker sees its own hits in a memory cache at once, and one after the other',
    file: 'test/feature/memcached/counting.test.ts',
    text: 'one worker sees its own hits, although they are added in the background',
  },
  {
    here: 'Hits under way to a memory cache are added before the process ends',
    file: 'test/feature/memcached/worker.test.ts',
    text: 'hits that were answered are counted although the worker is told to end',
  },
  {
    here: '`MEMSTORE_MAX_IDLE_CONNS` bounds the connections to a node',
    file: 'test/feature/memcached/counting.test.ts',
    text: 'no more connections are opened than are to be kept',
  },
  {
    here: 'Counters in a memory cache are read up to 2^64-1',
    file: 'worker/counters/memcached/counter-value.test.ts',
    text: "?? 'no counter'",
  },
  {
    here: 'Settings out of range, contradicting or misspelled are told, all at once',
    file: 'test/e2e/mistakes.test.ts',
    text: 'mistake 10: a duration without its unit, told together with all others',
  },
  {
    here: 'A duration is at most 480h',
    file: 'shared/settings/kind.test.ts',
    text: ' reads $',
  },
  {
    here: 'The debug port opens first and says what is awaited',
    file: 'test/e2e/mistakes.test.ts',
    text: 'mistake 7: no store at start',
  },
  {
    here: 'A port in use ends the start',
    file: 'test/e2e/mistakes.test.ts',
    text: 'mistake 6: the',
  },
  {
    here: '`GRPC_MAX_CONNECTION_AGE` unset is no limit',
    file: 'worker/settings.test.ts',
    text: 'all other settings have their defaults',
  },
  {
    here: 'The HTTP and the debug port may serve over TLS',
    file: 'worker/listen/plain-http-tls.test.ts',
    text: 'decisions and debug pages are served over TLS',
  },
  {
    here: 'Client certificates must come from `GRPC_CLIENT_TLS_CACERT`',
    file: 'test/contract/grpc-transport-connections.ts',
    text: 'with a client authority, only callers with its certificates are served',
  },
  {
    here: 'gRPC reflection is served',
    file: 'worker/listen/grpc/grpc-server.test.ts',
    text: 'reflection lists the services and describes what they take',
  },
  {
    here: "The store's health component is healthy when first seen",
    file: 'worker/health.test.ts',
    text: 'a worker starts healthy when no configuration is required',
  },
  {
    here: 'The health of the empty service name is that of `ratelimit`',
    file: 'worker/listen/grpc/grpc-server.test.ts',
    text: 'health is the same for the service and for the empty name',
  },
  {
    here: 'After the signal to stop, answers tell Envoy to ask other workers (`x-envoy-immediate-health-check-fail`); the port closes when it does',
    file: 'test/e2e/envoy-endings.test.ts',
    text: 'nor does it where Envoy tries nothing again',
  },
  {
    here: 'SIGTERM always ends the process, in bounded time; a second signal at once',
    file: 'shared/lifecycle.test.ts',
    text: 'a stop that never ends is cut short, with exit code 0',
  },
  {
    here: 'SIGTERM ends the wait for the first rules',
    file: 'test/feature/xds/source-worker.test.ts',
    text: 'it ends at once when it is told to while it waits for rules',
  },
  {
    here: 'The fields of a JSON log line come in any order',
    file: 'shared/log.test.ts',
    text: 'a JSON line has exactly three fields',
  },
  {
    here: 'Metric outputs are independent; the last resort is standard output',
    file: 'worker/metrics/statistics.test.ts',
    text: 'without another output, JSON lines go to the given output',
  },
  {
    here: 'Pulled over-limit hits of deeper rules are counted once',
    file: 'worker/metrics/metric-mapping.test.ts',
    text: 'what has no rule by default is not mapped',
  },
  {
    here: 'Pulled metrics have `EXTRA_TAGS` as labels',
    file: 'worker/metrics/pull-endpoint.test.ts',
    text: 'extra tags are labels of every metric',
  },
  {
    here: 'Pulled counters are live',
    file: 'worker/metrics/pull-endpoint.test.ts',
    text: 'counters are there as soon as they have counted, and live',
  },
  {
    here: 'A pull port that cannot be opened ends the start',
    file: 'worker/metrics/pull-endpoint.test.ts',
    text: 'a port that cannot be opened is told with its setting',
  },
  {
    here: 'Mistakes in a mapping file end the start, all told at once with line and column',
    file: 'worker/metrics/mapping-file.test.ts',
    text: 'all problems are told at once, each with its place',
  },
  {
    here: "The pull endpoint shows this worker's metrics",
    file: 'worker/metrics/pull-endpoint.test.ts',
    text: 'every kind of metric, in the text form',
  },
  {
    here: 'OpenMetrics is there to be asked for; a counter keeps its name, its type is unknown',
    file: 'worker/metrics/pull-endpoint.test.ts',
    text: 'OpenMetrics is for who asks for it, and names stay',
  },
  {
    here: 'Commas and control characters in tag values become `_`',
    file: 'worker/metrics/tagged-format.test.ts',
    text: 'no part of a name can add a tag, a line or a field',
  },
  {
    here: 'Counts survive an outage of the metrics receiver',
    file: 'worker/metrics/statistics.test.ts',
    text: 'an outage of the receiver loses no counts',
  },
  {
    here: 'Metric names made from requests are bounded; what does not fit shares one name',
    file: 'worker/metrics/registry.test.ts',
    text: 'runtime names beyond the bound share one folded name, which is said once',
  },
  {
    here: 'Control characters in metric names become `_`',
    file: 'worker/metrics/metric-name.test.ts',
    text: 'no text can end a line or a name on the wire',
  },
  {
    here: '`/stats` shows every counter and gauge; `/settings` and `/status` exist',
    file: 'worker/listen/debug.test.ts',
    text: 'rules, statistics, settings, status and what found no rule are shown as they are then',
  },
  {
    here: "Profiles are V8's, in pprof's format; there is no execution trace",
    file: 'worker/listen/debug.test.ts',
    text: 'there is no trace, and a sentence says what to take instead',
  },
  {
    here: 'Spans have the stable RPC attributes, and never `rpc.grpc.status_code`; `OTEL_SEMCONV_STABILITY_OPT_IN` brings back the older ones',
    file: 'worker/tracing-rpc.test.ts',
    text: 'by default a call is described with the stable attributes alone',
  },
  {
    here: 'The lengths of `Redis Pipeline Execution` are the counters of its decision, whose round trip others share',
    file: 'test/feature/output/tracing.test.ts',
    text: "a decision over gRPC is a server span with the decision and the store's call below it",
  },
  {
    here: 'While the receiver of traces does not read, no more are made, and the log says so',
    file: 'test/feature/output/tracing-stalled.test.ts',
    text: 'decisions go on, and the stop is bounded, while nobody reads traces',
  },
  {
    here: 'A bad resource of a management server keeps its last good version, and the others of its response take effect; the response is refused all the same',
    file: 'worker/rules-source/ads-resources.test.ts',
    text: 'a bad resource keeps its last good version while the others take effect',
  },
  {
    here: 'What is missing beside a bad resource that was never good, or cannot be read, stays: it may have been renamed',
    file: 'worker/rules-source/ads-resources.test.ts',
    text: 'what is missing beside a resource that cannot be identified is not taken to be gone',
  },
  {
    here: 'A refusal has the code INVALID_ARGUMENT, names every problem, and counts in `config_load_error` also when a resource cannot be read',
    file: 'test/feature/xds/source.test.ts',
    text: 'what is of another type, or no message at all, is refused and counted as a failed load',
  },
  {
    here: 'A server that sends again what was refused is answered after a second, and the log has it once',
    file: 'test/feature/xds/source.test.ts',
    text: 'a server that sends again what was refused does not flood the log, nor is it flooded',
  },
  {
    here: 'A new stream begins without a nonce',
    file: 'worker/rules-source/ads-client.test.ts',
    text: 'a new stream begins with the version accepted last and without a nonce',
  },
  {
    here: 'A new stream claims no version that is a bare number, which a restarted server gives out again',
    file: 'worker/rules-source/ads-client.test.ts',
    text: 'a new stream claims no version that is a number: a restarted server counts anew',
  },
  {
    here: 'Waits between streams grow by half, or by `XDS_CLIENT_BACKOFF_RANDOM_FACTOR` when it is above 1, and begin anew once rules are accepted; jitter is off unless asked for',
    file: 'worker/rules-source/xds-source-options.test.ts',
    text: 'without settings the waits grow by half from 10 s to 60 s, and nothing varies',
  },
  {
    here: '`CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL` is the wait after an attempt to connect that failed',
    file: 'test/feature/xds/source-waits.test.ts',
    text: 'attempts that get no connection wait the interval for connecting each time',
  },
  {
    here: '`value_to_metric` and `share_threshold` arrive over xDS, from a control plane that knows them',
    file: 'test/feature/xds/source.test.ts',
    text: 'fields that the public message lacks arrive',
  },
  {
    here: 'A second stream, `ratelane.fleet.v1.Fleet/Link`, is opened to the same server; one that does not know it is asked again every ten minutes (`CONFIG_FLEET_LINK=false` asks none)',
    file: 'worker/fleet/link.test.ts',
    text: 'a server without the service is named once at info, and asked again ten minutes later',
  },
];
