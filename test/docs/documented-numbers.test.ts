// Compares numbers in pages with the code: each sentence is built from the constants that it describes.
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { parse } from 'yaml';
import * as recordings from '../../control-plane/authoring/rehearsal/effect/recordings.ts';
import { maxBodyBytes, maxListeners } from '../../control-plane/server/admin/admin-app.ts';
import { peersMs } from '../../control-plane/server/admin/admin-controller.ts';
import * as admin from '../../control-plane/server/admin/admin-server.ts';
import * as source from '../../control-plane/server/admin/controllers/sources.ts';
import { maxOfCaller } from '../../control-plane/server/admin/events.ts';
import { mostCopied } from '../../control-plane/server/admin/lift.ts';
import { settleMs } from '../../control-plane/server/admin/status-report.ts';
import { shortestToken } from '../../control-plane/server/admin/tokens.ts';
import * as webhook from '../../control-plane/server/admin/webhook-route.ts';
import * as fleet from '../../control-plane/server/fleet/limits.ts';
import {
  maxEntries as maxActivity,
  maxTextLength as maxActivityText,
} from '../../control-plane/server/history/activity/activity.ts';
import { maxEndLength } from '../../control-plane/server/history/activity/audit.ts';
import { writeIntervalMs } from '../../control-plane/server/history/stored-file.ts';
import * as notifier from '../../control-plane/server/notify/notifier.ts';
import { maxOutcomes } from '../../control-plane/server/record/outcomes.ts';
import { answerMs as peerAnswerMs } from '../../control-plane/server/record/peers/peers.ts';
import { engineTiming, gitTiming } from '../../control-plane/server/record/record-keeper.ts';
import * as controlPlane from '../../control-plane/server/server.ts';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { maxParts, mostInNames, mostMetadata } from '../../control-plane/server/snapshot/build.ts';
import { fetchTimeoutMs, mostProcesses } from '../../control-plane/server/store/git-command.ts';
import { maxSharedTextBytes } from '../../control-plane/server/store/shared-text.ts';
import * as xdsNames from '../../control-plane/server/xds/limits.ts';
import { handshakeLimitMs, maxUnfinishedHandshakes } from '../../shared/connection-limit.ts';
import { mostDaysAhead } from '../../shared/rules/rule-end.ts';
import { maxDepth } from '../../shared/rules/yaml/yaml-text.ts';
import { maxTextLength } from '../../shared/rules/yaml/yaml-tree.ts';
import { controlPlaneBounds, defaultBounds } from '../../shared/rules-file.ts';
import { patienceMs } from '../../worker/counters/failure/failure-mode.ts';
import { logIntervalMs, quietMs } from '../../worker/counters/failure/failure-policy.ts';
import * as memcached from '../../worker/counters/memcached/memcached-nodes.ts';
import { maxOpen as maxOpenMemcached } from '../../worker/counters/memcached/memcached-store.ts';
import { maxCharacters, maxCounters } from '../../worker/counters/memory-store.ts';
import { maxWaiting } from '../../worker/counters/redis/batching.ts';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { maxWaitingHits } from '../../worker/decision/should-rate-limit.ts';
import { maxSamplesPerSecond } from '../../worker/decision/unmatched-sampler.ts';
import * as limited from '../../worker/fleet/limited-values.ts';
import { intervalMs as reportIntervalMs } from '../../worker/fleet/link.ts';
import { maxDescriptors, maxOpen } from '../../worker/fleet/link-answers.ts';
import { maxPlainConnections, maxTlsConnections } from '../../worker/grpc/acceptor.ts';
import * as http2 from '../../worker/grpc/http2/limits.ts';
import * as large from '../../worker/grpc/large-requests.ts';
import * as debug from '../../worker/listen/debug.ts';
import * as http from '../../worker/listen/http.ts';
import { headersLimitMs, requestLimitMs } from '../../worker/listen/plain-http-server.ts';
import * as workerPorts from '../../worker/listen/server-tls.ts';
import * as streamed from '../../worker/listen/streamed-answers.ts';
import { keepaliveMs, keepaliveTimeoutMs } from '../../worker/management-stream.ts';
import * as pull from '../../worker/metrics/pull-endpoint.ts';
import { maxStoreServers } from '../../worker/metrics/registry.ts';
import { backoff, maxSilentSteps, silenceStepMs } from '../../worker/processes/process-slot.ts';
import { maxBufferedBytes } from '../../worker/recording/record-buffer.ts';
import { flushIntervalMs } from '../../worker/recording/record-file.ts';
import { maxLineLength } from '../../worker/recording/recorder.ts';
import { closeGraceMs } from '../../worker/run-worker.ts';
import { leaveLimitMs } from '../../worker/serving.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { stopGraceMs } from '../../worker/worker.ts';

const count = (value: number) => value.toLocaleString('en-US');
const kib = (bytes: number) => `${bytes / 1024} KiB`;
const mib = (bytes: number) => `${bytes / 1024 ** 2} MiB`;
const time = (ms: number) => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

const words: Readonly<Record<number, string>> = {
  ...{ 1: 'a', 2: 'two', 4: 'four', 5: 'five', 6: 'six', 10: 'ten', 100: 'A hundred' },
};
/** Formats whole minutes or seconds for a sentence. */
const spoken = (ms: number) =>
  ms % 60_000 === 0
    ? `${words[ms / 60_000]} minute${ms === 60_000 ? '' : 's'}`
    : `${words[ms / 1000]} seconds`;

/** From the first attempt of a notification to the end of the last one. */
function toLastTryMs(): number {
  const { retries, minTimeout, factor, maxTimeout } = notifier.retries;
  const waits = Array.from({ length: retries }, (_, index) =>
    Math.min(minTimeout * factor ** index, maxTimeout),
  );
  return waits.reduce((sum, waitMs) => sum + waitMs, (retries + 1) * notifier.answerMs);
}

const xds = xdsNames.defaultLimits;
const requests = workerTable.requests.settings;

const plainConnections = [http, debug, pull].map((port) => count(port.maxConnections)).join(', ');

const read = (page: string) => readFile(new URL(`../../${page}`, import.meta.url), 'utf8');

const chart = parse(await read('compose/helm/ratelane/values.yaml'));
const { min, max, cpuPercent } = chart.worker.autoscaling;
/** `512Mi` in the format of a page. */
const { cpuMillis, memoryLimitMebibytes } = chart.worker.perProcess;
const memoryOf = ({ limits }: { readonly limits: { readonly memory: string } }) =>
  limits.memory.replace(/(?=[GM]i$)/, ' ').replace(/$/, 'B');

const sentences: Readonly<Record<string, readonly string[]>> = {
  'SECURITY.md': [
    `| gRPC connections | \`GRPC_MAX_CONNECTIONS\`: ${count(maxPlainConnections)}, with TLS ${count(maxTlsConnections)}; ${maxUnfinishedHandshakes} unfinished handshakes, ${time(handshakeLimitMs)} each |`,
    `| one gRPC connection | ${count(http2.maxConcurrentStreams)} calls; ${kib(http2.maxHeaderListBytes)} of headers, ${mib(http2.maxBufferedBytes)} unfinished, ${mib(http2.maxUnsentBytes)} unread (`,
    `| all requests | ${mib(http2.maxOccupiedBytes)} unfinished or unread; of those above ${kib(large.largeRequestBytes)} ${mib(large.maxAtWorkBytes)} in progress, ${mib(large.maxWaitingBytes)} waiting |`,
    `| one request | ${kib(maxRequestBytes)}, \`REQUEST_MAX_DESCRIPTORS\` ${requests.maxDescriptors.default}, \`REQUEST_MAX_ENTRIES\` ${count(requests.maxEntries.default)} |`,
    `| HTTP, debug, pull ports | ${plainConnections} connections; headers in ${time(headersLimitMs)}, a request in ${time(requestLimitMs)} |`,
    `| bodies of \`/json\` | ${mib(http.maxAllBodiesBytes)} |`,
    `| profiles | one, ${debug.maxProfileSeconds} s |`,
    `| pulled statistics | ${streamed.maxAnswers} answers, ${time(streamed.answerLimitMs)} each |`,
    `| decisions awaiting the store | ${count(maxWaiting)}, as many hits |`,
    `| counters in process | ${count(maxCounters)}; ${Math.round(maxCharacters / 1e6)} million characters |`,
    `| unmatched samples | ${maxSamplesPerSecond} a second |`,
    `| rules | ${count(defaultBounds.files)} files, ${maxTextLength / 1024 ** 2} Mi characters each, as many through aliases, ${maxDepth} levels; ${mib(controlPlaneBounds.totalBytes)}, names of ${mostInNames / 1024 ** 2} Mi, ${count(maxParts)} rules, limits, values (${count(mostMetadata)}/rule) |`,
    `| a worker's stop | ${time(stopGraceMs + closeGraceMs)} |`,
    `| xDS connections | ${count(xds.maxConnections)}, with TLS ${count(xds.maxTlsConnections)}; ${count(xds.maxOpening)} opening |`,
    `| xDS streams | ${count(xds.maxStreams)}, ${count(xds.maxStreamsPerConnection)} a connection; ${mib(xds.maxRequestBytes)} a request, ${xds.requestsPerSecond} a second; ${mib(xds.maxUnfinishedBytes)} unfinished; cut when unread for ${time(xds.drainTimeoutMs)} |`,
    `| names on a stream | ${count(xdsNames.maxNames)} of ${count(xdsNames.maxNameLength)} characters; ${mib(xds.maxRetainedBytes)} altogether |`,
    `| workers' reports | ${fleet.messagesPerSecond} a second;`,
    `| admin connections | ${count(admin.maxUnauthenticated)} without a token (${count(admin.maxUnauthenticatedTls)} with TLS); ${admin.maxConnections} with one; a request within ${time(admin.unauthenticatedLimitMs)} |`,
    `| admin bodies | ${mib(maxBodyBytes)}, webhooks ${mib(webhook.maxBytes)}; ${mib(admin.maxBufferedBytes)} in all, ${time(admin.bodyTimeoutMs)} each |`,
    `| listeners to \`/events\` | ${maxListeners}, ${maxOfCaller} a token |`,
    `| record of a rollout | ${kib(maxSharedTextBytes)} |`,
    `| git | ${mostProcesses} processes, each with a time limit |`,
  ],
  'worker/docs/operating.md': [
    `for ${time(patienceMs)} (or \`KVSTORE_TIMEOUT\`, if less) in the other modes`,
    `at once and then every ${time(logIntervalMs)} with their number`,
    `answered late has not failed for ${time(quietMs)}`,
    `is replaced after ${time(backoff.initialMs)}, then ${time(backoff.initialMs * backoff.multiplier)}, up to ${time(backoff.maxMs)}; one that is silent for ${time(silenceStepMs * maxSilentSteps)} is killed.`,
    `\`--git-poll\` is due, ${controlPlaneTable.git.settings.pollMs.default / 1000} seconds,`,
    `The chart without values: ${min} to ${max} workers at ${cpuPercent} % of ${cpuMillis}m CPU, ${memoryLimitMebibytes} MiB each;`,
    `${chart.controlPlane.replicas} control planes with ${chart.controlPlane.resources.requests.cpu}, and ${memoryOf({ limits: chart.controlPlane.resources.requests })} of at most ${memoryOf(chart.controlPlane.resources)}.`,
    `or after ${time(leaveLimitMs)}, both ports accept no new connections`,
    `ends within ${time(stopGraceMs + closeGraceMs)} with exit code 0`,
    `there are at most ${maxUnfinishedHandshakes}, for ${time(handshakeLimitMs)} each.`,
    `\`GRPC_MAX_CONNECTIONS\` is ${count(maxPlainConnections)}, or ${count(maxTlsConnections)} with TLS`,
    `| those of the control plane's ports | the same, read every ${time(controlPlane.tlsIntervalMs)} |`,
    `| client certificates for memcached | replace the files, which are read every ${time(memcached.tlsIntervalMs)};`,
  ],
  'shared/docs/behaviour.md': [
    `Of the servers of the store ${maxStoreServers} have a name of their own.`,
    `At most ${maxOpen} questions at once, of ${maxDescriptors} descriptors`,
    `without ending its connections is left after ${(keepaliveMs + keepaliveTimeoutMs) / 1000} seconds`,
  ],
  'worker/docs/statistics.md': [`Beyond ${maxStoreServers} servers further ones are \`others\``],
  'shared/rules/README.md': [`is at most ${mostDaysAhead} days ahead`],
  'control-plane/docs/commands.md': [
    `kept in a buffer of ${mib(maxBufferedBytes)}, and written ${1000 / flushIntervalMs} times a second`,
    `a line of more than ${maxLineLength} characters`,
    `\`RECORD_DECISIONS_RATE\` (${workerTable.recording.settings.rate.default})`,
  ],
  'control-plane/docs/admin-api.md': [
    `A token has at least ${shortestToken} characters`,
    `Of a text above ${count(2 * maxEndLength)} characters the middle is left out`,
  ],
  'control-plane/server/admin/openapi.json': [
    `are asked, for at most ${peersMs.reading / 1000} seconds: each that counts by itself`,
    `are asked, for at most ${peersMs.reset / 1000} seconds. Of those that count together`,
    `At most the newest ${mib(recordings.mostBytes)} of recordings are read, for at most ${recordings.mostMs / 1000} seconds`,
  ],
  'control-plane/docs/operating.md': [
    `in the last ${source.mostRevisions} revisions, for ${source.mostMs / 1000} seconds at most`,
    `at most the newest ${mib(recordings.mostBytes)} are decided again`,
    `a fetch may take ${spoken(fetchTimeoutMs)}.`,
    `Files above ${mib(defaultBounds.fileBytes)}, which no rules may have`,
    `It is written every ${writeIntervalMs / 1000} seconds while there is news`,
    `has the last ${count(maxActivity)} lines of the audit log`,
    `the outcome, cut at ${maxActivityText} characters each`,
    `what became of the last ${maxOutcomes} revisions, which \`history\``,
    `asks its peers at once, for ${spoken(peerAnswerMs)}, with the token`,
    `after ${spoken(settleMs)} without a change, \`status\` names them`,
    `has one of at least ${shortestToken} characters`,
    `waits ${spoken(notifier.answerMs)} for an answer and is tried ${words[notifier.retries.retries + 1]} times within ${words[Math.ceil(toLastTryMs() / 60_000)]} minutes`,
    `${words[notifier.maxWaiting]} wait for each receiver`,
    `reports every ${spoken(reportIntervalMs)} what it decides`,
    `keeps the ${count(limited.size)} values that it refuses most, for ${spoken(limited.periodMs)} each time, and reports ${limited.maxReported} of them`,
    `names the end, at most ${mostDaysAhead} days ahead`,
    `refused where these are more than ${mostCopied}`,
    `A worker that has been silent for ${time(fleet.staleMs)} is left out.`,
    `another one after ${time(engineTiming.term)} (an engine) or ${time(gitTiming.term)} (Git) without a sign of life`,
    `a sign of life, every ${engineTiming.renew / 1000} or ${gitTiming.renew / 1000} seconds.`,
    `at most ${(xds.keepaliveMs + xds.keepaliveTimeoutMs) / 1000} seconds, while it keeps the rules`,
  ],
};

for (const [page, expected] of Object.entries(sentences)) {
  test(`numbers of ${page} are those of the code`, async (t) => {
    const words = (await read(page)).replace(/\s+/g, ' ');
    t.deepEqual(
      expected.filter((sentence) => !words.includes(sentence)),
      [],
      'the page no longer has this sentence',
    );
  });
}

test('as many hits may wait as decisions, for either kind of store', (t) => {
  t.deepEqual([maxWaitingHits, maxOpenMemcached], [maxWaiting, maxWaiting]);
});

test('the documented poll intervals are those of the code', (t) => {
  t.is(workerPorts.tlsIntervalMs, 1000, 'worker/docs/operating.md, shared/docs/behaviour.md');
  t.deepEqual([engineTiming.poll, gitTiming.poll], [2000, 5000], 'control-plane/docs/operating.md');
});
