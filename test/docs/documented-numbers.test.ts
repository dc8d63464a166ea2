// Numbers that pages tell, held against the code: each sentence is made from the constants that it speaks of.
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { maxBodyBytes } from '../../control-plane/admin/admin-app.ts';
import * as admin from '../../control-plane/admin/admin-server.ts';
import { maxListeners } from '../../control-plane/admin/events.ts';
import * as webhook from '../../control-plane/admin/webhook-route.ts';
import * as fleet from '../../control-plane/fleet/limits.ts';
import { directoryTiming, gitTiming } from '../../control-plane/rollout/record-keeper.ts';
import * as controlPlane from '../../control-plane/server.ts';
import { defaultLimits as xds } from '../../control-plane/xds/limits.ts';
import { handshakeLimitMs, maxUnfinishedHandshakes } from '../../shared/connection-limit.ts';
import { maxPlainConnections, maxTlsConnections } from '../../shared/grpc/acceptor.ts';
import * as http2 from '../../shared/grpc/http2/limits.ts';
import * as large from '../../shared/grpc/large-requests.ts';
import { maxDepth, maxTextLength } from '../../shared/rules/yaml/yaml-text.ts';
import { maxAliasedNodes } from '../../shared/rules/yaml/yaml-tree.ts';
import { defaultBounds } from '../../shared/rules-file.ts';
import { patienceMs } from '../../worker/counters/failure/failure-mode.ts';
import { quietMs, sayIntervalMs } from '../../worker/counters/failure/failure-policy.ts';
import { maxPendingChanges } from '../../worker/counters/memcached/memcached-lane.ts';
import * as memcached from '../../worker/counters/memcached/memcached-nodes.ts';
import { maxOpen as maxOpenMemcached } from '../../worker/counters/memcached/memcached-store.ts';
import { maxCharacters, maxCounters } from '../../worker/counters/memory-store.ts';
import { maxWaiting } from '../../worker/counters/redis/batching.ts';
import { leastBytes } from '../../worker/decision/over-limit-cache.ts';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { maxWaitingHits } from '../../worker/decision/should-rate-limit.ts';
import { maxSamplesPerSecond } from '../../worker/decision/unmatched-sampler.ts';
import { maxDescriptors, maxOpen } from '../../worker/fleet/link-answers.ts';
import * as debug from '../../worker/listen/debug.ts';
import * as http from '../../worker/listen/http.ts';
import { headersLimitMs, requestLimitMs } from '../../worker/listen/plain-http-server.ts';
import * as workerPorts from '../../worker/listen/server-tls.ts';
import { keepaliveMs, keepaliveTimeoutMs } from '../../worker/management-stream.ts';
import * as pull from '../../worker/metrics/pull-endpoint.ts';
import { maxRuntimeKeyLength, maxStoreServers } from '../../worker/metrics/registry.ts';
import { backoff, maxSilentSteps, silenceStepMs } from '../../worker/processes/process-slot.ts';
import { closeGraceMs } from '../../worker/run-worker.ts';
import { leaveLimitMs } from '../../worker/serving.ts';
import { stopGraceMs } from '../../worker/worker.ts';

const count = (value: number) => value.toLocaleString('en-US');
const kib = (bytes: number) => `${bytes / 1024} KiB`;
const mib = (bytes: number) => `${bytes / 1024 ** 2} MiB`;
const time = (ms: number) => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

const plainConnections = [http, debug, pull].map((port) => count(port.maxConnections)).join(', ');

const sentences: Readonly<Record<string, readonly string[]>> = {
  'SECURITY.md': [
    `| \`GRPC_MAX_CONNECTIONS\`, ${count(maxPlainConnections)}, with TLS ${count(maxTlsConnections)};`,
    `| ${maxUnfinishedHandshakes} on a port of either program, ${time(handshakeLimitMs)} each;`,
    `${mib(http2.maxHeldBytes)}; the connection stalled the longest is cut`,
    `| ${mib(large.maxAtWorkBytes)} in progress, ${time(large.sliceMs)} of each round of the event loop; ${mib(large.maxWaitingBytes)} wait for their turn`,
    `| ${count(http2.maxConcurrentStreams)} calls, ${kib(maxRequestBytes)} a message, ${mib(http2.maxBufferedBytes)} unfinished, ${kib(http2.maxHeaderListBytes)} of headers, ${mib(http2.maxUnsentBytes)} unread;`,
    `| unfinished bodies of \`/json\` | ${mib(http.maxAllBodiesBytes)} in all`,
    `| HTTP, debug, pull port | ${plainConnections} connections;`,
    `in ${time(headersLimitMs)}, a request in ${time(requestLimitMs)} |`,
    `in all, ${time(requestLimitMs)} each; beyond, the oldest is refused`,
    `| profiles | one at a time, ${debug.maxProfileSeconds} s at most`,
    `| samples of requests that match nothing | ${maxSamplesPerSecond} a second`,
    `| metric names made from requests | \`RUNTIME_METRIC_NAMES_MAX\`, ${count(maxRuntimeKeyLength)} characters each;`,
    `| decisions that wait for the store | ${count(maxWaiting)}, and as many hits`,
    `| counters in process | ${count(maxCounters)}, and ${Math.round(maxCharacters / 1e6)} million characters of their keys;`,
    `| rules | ${count(defaultBounds.files)} files, ${maxTextLength / 1024 ** 2} Mi characters each, ${maxDepth} levels, ${count(maxAliasedNodes)} values through aliases`,
    `| admin connections that have not authenticated | ${count(admin.maxUnauthenticated)}, with TLS ${count(admin.maxUnauthenticatedTls)}, each for one request and ${time(admin.unauthenticatedLimitMs)}, its headers ${time(admin.headTimeouts.headersTimeout)};`,
    `| admin connections with a token | ${admin.maxConnections}, beside those;`,
    `| bodies that the admin API reads | ${mib(maxBodyBytes)} each, read only when the token fits; ${mib(webhook.maxBytes)} of a webhook, whose signature comes after; ${mib(admin.maxHeldBytes)} in all, ${time(admin.bodyTimeoutMs)} each:`,
    `| callers that listen to \`/events\` | ${maxListeners};`,
    `| xDS connections | ${count(xds.maxConnections)}, with TLS ${count(xds.maxTlsConnections)};`,
    `| ${count(xds.maxOpening)} are read at once, the others wait for their turn; then the oldest goes if it has had ${time(xds.openingMs)};`,
    `| xDS streams | ${count(xds.maxStreams)}, ${count(xds.maxStreamsPerConnection)} on a connection; ${mib(xds.maxRequestBytes)} a request, ${xds.requestsPerSecond} requests a second; a stream that does not read is cut after ${time(xds.drainTimeoutMs)}`,
    `| questions about counters | ${maxDescriptors} descriptors`,
    `a worker answers ${maxOpen} at once`,
    `| unfinished xDS requests | ${mib(xds.maxUnfinishedBytes)} on all streams together, ${time(xds.requestMs)} each;`,
  ],
  'worker/docs/failures.md': [
    `for ${time(patienceMs)} (or \`KVSTORE_TIMEOUT\`, if less) in the other modes`,
    `at once and then every ${time(sayIntervalMs)} with their number`,
    `answered late has not failed for ${time(quietMs)}`,
    `| gRPC request | ${kib(maxRequestBytes)}, ${http2.maxConcurrentStreams} calls at once on a connection |`,
    `| ${mib(http2.maxHeldBytes)} | the connections stalled the longest are cut`,
    `| ${mib(large.maxAtWorkBytes)} at work, ${mib(large.maxWaitingBytes)} that wait for their turn |`,
    `| \`/json\` body | ${kib(maxRequestBytes)}, bounded nesting; all that are being read ${mib(http.maxAllBodiesBytes)} |`,
    `| Connections to the HTTP, the debug and the pull port | ${plainConnections} |`,
    `| Counters with hits under way to a memory cache, for each connection | ${count(maxPendingChanges)} |`,
    `| Local cache of keys over their limit | \`LOCAL_CACHE_SIZE_IN_BYTES\`, at least ${kib(leastBytes)} |`,
    `| A rules file | ${maxTextLength / 1024 ** 2} Mi characters, ${maxDepth} levels, ${count(maxAliasedNodes)} values through aliases |`,
    `| Stop after SIGTERM | ${time(leaveLimitMs)} for callers to leave, ${time(stopGraceMs)} for decisions in flight, ${time(stopGraceMs + closeGraceMs)} in all |`,
    `| Decisions waiting for the store | ${count(maxWaiting)}, and as many hits |`,
    `| Live counters in process | ${count(maxCounters)} |`,
    `| Rules files | ${count(defaultBounds.files)} files of ${mib(defaultBounds.fileBytes)} |`,
    `| Answers of the pull endpoint being written | ${pull.maxAnswers} at once, ${time(pull.answerLimitMs)} each |`,
  ],
  'worker/docs/operating.md': [
    `there are at most ${maxUnfinishedHandshakes}, for ${time(handshakeLimitMs)} each.`,
    `\`GRPC_MAX_CONNECTIONS\` is ${count(maxPlainConnections)}, or ${count(maxTlsConnections)} with TLS`,
    `| those of the control plane's ports | the same, read every ${time(controlPlane.tlsIntervalMs)} |`,
    `| client certificates for memcached | replace the files, which are read every ${time(memcached.tlsIntervalMs)};`,
  ],
  'worker/docs/processes.md': [
    `is replaced after ${time(backoff.initialMs)}, then ${time(backoff.initialMs * backoff.multiplier)}, up to ${time(backoff.maxMs)}; one that is silent for ${time(silenceStepMs * maxSilentSteps)} is killed.`,
  ],
  'worker/docs/behaviour.md': [
    `Of the servers of the store ${maxStoreServers} are told apart.`,
    `without ending its connections is left after ${(keepaliveMs + keepaliveTimeoutMs) / 1000} seconds`,
  ],
  'worker/docs/statistics.md': [`Beyond ${maxStoreServers} servers further ones are \`others\``],
  'control-plane/docs/operating.md': [
    `A worker that has been silent for ${time(fleet.staleMs)} is left out.`,
    `more than ${count(fleet.maxDecisionsPerSecond)} decisions a second`,
    `another one after ${time(directoryTiming.lease)} (directory) or ${time(gitTiming.lease)} (Git) without a sign of life`,
    `a sign of life, every ${directoryTiming.renew / 1000} or ${gitTiming.renew / 1000} seconds.`,
    `at most ${(xds.keepaliveMs + xds.keepaliveTimeoutMs) / 1000} seconds, while it goes on`,
  ],
};

for (const [page, expected] of Object.entries(sentences)) {
  test(`numbers of ${page} are those of the code`, async (t) => {
    const text = await readFile(new URL(`../../${page}`, import.meta.url), 'utf8');
    const words = text.replace(/\s+/g, ' ');
    t.deepEqual(
      expected.filter((sentence) => !words.includes(sentence)),
      [],
      'the page does not say this any more',
    );
  });
}

test('as many hits may wait as decisions, for either kind of store', (t) => {
  t.deepEqual([maxWaitingHits, maxOpenMemcached], [maxWaiting, maxWaiting]);
});

test('what pages call a second is one', (t) => {
  t.is(workerPorts.tlsIntervalMs, 1000, 'worker/docs/operating.md, worker/docs/behaviour.md');
  t.is(directoryTiming.poll, 1000, 'control-plane/docs/operating.md: each second (directory)');
  t.is(gitTiming.poll, 5000, 'control-plane/docs/operating.md: every five (Git)');
});
