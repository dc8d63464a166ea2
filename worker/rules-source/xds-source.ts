// Rules from a management server: runs the ADS client over connections and timers. ads-client.ts is the
// exchange itself, with the choice of the server, ads-resources.ts applies resources, ads-report.ts reports.

import { agreementKey } from '../../shared/agreement-key.ts';
import type { BackoffOptions } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { errorText } from '../../shared/errors.ts';
import { runInSlices } from '../../shared/in-slices.ts';
import { instanceKey } from '../../shared/instance-key.ts';
import type { Log } from '../../shared/log.ts';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import type { RuleSetBuilder } from '../../shared/rules/rule-set.ts';
import { extensionsAnnouncement } from '../../shared/rules/wire/resource-fields.ts';
import { stackText } from '../../shared/source-places.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { type DiscoveryProtos, rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import type {
  AnyMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
  NodeMessage,
} from '../../shared/wire/discovery-messages.ts';
import type { Protos } from '../../shared/wire/protos.ts';
import type {
  ManagementServer,
  ManagementStream,
  OpenManagementStream,
} from '../management-stream.ts';
import type { Metrics } from '../metrics.ts';
import { type AdsAction, type AdsEvent, initialAdsState, stepAdsClient } from './ads-client.ts';
import { createAdsReport, toShown } from './ads-report.ts';
import {
  findReplaced,
  type Intake,
  type PreparedResources,
  prepareResources,
  type ResourcesInForce,
  takeResources,
} from './ads-resources.ts';
import type { ParsedResource } from './parsed-resource.ts';
import { isLargeResource, type ParsingThread } from './parsing-thread.ts';
import type { LoadResult, RulesSource } from './source.ts';

/** The CONFIG_GRPC_XDS_* and XDS_CLIENT_* settings. */
export interface XdsSourceOptions {
  /** At least one; of several the next is asked when one is lost. */
  readonly servers: readonly [ManagementServer, ...ManagementServer[]];
  readonly nodeId: string;
  /** Comma-separated key=value items. */
  readonly nodeMetadata: string;
  /** The hash of the settings that must be the same on all workers that share a store. */
  readonly agreement: string;
  /** The wait after an attempt to connect that failed. */
  readonly connectRetryMs: number;
  /** The waits after streams that ended. */
  readonly backoff: BackoffOptions;
}

export interface XdsSourceDeps {
  readonly options: XdsSourceOptions;
  /** Identifies this start of the worker. */
  readonly instance: string;
  readonly discovery: Pick<DiscoveryProtos, 'aggregated'>;
  readonly protos: Pick<Protos, 'rateLimitConfig'>;
  /** Parses large resources, once there are decisions to make. */
  readonly parsingThread?: ParsingThread;
  readonly builder: RuleSetBuilder;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** Problems in a refusal, which is one message; the log has all of them. */
const maxRefusalProblems = 20;
const maxRefusalLength = 8_192;

/** Responses that arrived while another was examined. */
const maxWaiting = 8;

/** Good rules stay in force whatever happens to the server. */
export function createXdsSource(deps: XdsSourceDeps): RulesSource {
  const { options, discovery, protos, parsingThread, builder, metrics, log, clock } = deps;
  const { servers, nodeId } = options;
  const clientOptions = {
    node: toAdsNode({
      id: nodeId,
      metadata: options.nodeMetadata,
      agreement: options.agreement,
      instance: deps.instance,
    }),
    typeUrl: rateLimitConfigTypeUrl,
    serverCount: servers.length,
    backoff: options.backoff,
    connectRetryMs: options.connectRetryMs,
  };
  const urls = servers.map(({ url }) => url);
  const report = createAdsReport({
    urls,
    usesTls: servers.some(({ tls }) => tls !== undefined),
    nodeId,
    metrics,
    log,
    clock,
  });
  const intakeDeps = {
    decode: (bytes: Buffer) => protos.rateLimitConfig.deserialize(bytes),
    builder,
  };

  let onLoad: (result: LoadResult) => void = () => {};
  let onServer: (server: ManagementServer) => void = () => {};
  let state = initialAdsState;
  let inForce: ResourcesInForce = new Map();
  let isTaking = false;
  /** Responses that arrived meanwhile. */
  let waiting: DiscoveryResponseMessage[] = [];
  /** The last refusal, unless something was accepted since. */
  let refused: { readonly digest: string; readonly text: string } | undefined;
  let openStream: OpenManagementStream | undefined;
  let connection: ManagementStream<DiscoveryRequestMessage> | undefined;
  /** Ends the current stream as if it had ended by itself. */
  let endStream: (reason: string) => void = () => {};
  let cancelWait = () => {};
  let nextAttemptMs = 0;
  let hasRules = false;
  let closed = false;

  function give(event: AdsEvent): void {
    if (closed) return;
    const step = stepAdsClient(clientOptions, state, event);
    state = step.state;
    for (const action of step.actions) perform(action);
  }

  function perform(action: AdsAction): void {
    switch (action.kind) {
      case 'connect':
        connect(action.server);
        break;
      case 'send':
        if (action.request.errorDetail) report.refused();
        else if (action.request.responseNonce) report.acknowledged();
        connection?.send(action.request);
        break;
      case 'deliver':
        deliver(action.response);
        break;
      case 'wait':
        nextAttemptMs = action.delayMs;
        cancelWait();
        cancelWait = clock.after(action.delayMs, () => give({ kind: 'waited' }));
        break;
    }
  }

  function connect(index: number): void {
    const server = servers[index] ?? servers[0];
    report.connecting(server.url);
    let isOpen = false;
    connection = openStream?.({
      server,
      method: discovery.aggregated.StreamAggregatedResources,
      clock,
      onOpen() {
        isOpen = true;
        report.opened();
        onServer(server);
        give({ kind: 'opened' });
      },
      onResponse(response) {
        report.received();
        if (!isTaking) give({ kind: 'response', response });
        // Each response is complete: when there are too many, only the newest are kept.
        else waiting = [...waiting, response].slice(-maxWaiting);
      },
      onEnd,
    });
    endStream = (reason) => {
      connection?.close();
      onEnd(reason);
    };

    function onEnd(reason: string): void {
      connection = undefined;
      waiting = [];
      give({ kind: isOpen ? 'ended' : 'connect-failed' });
      const nextUrl = servers[state.server]?.url;
      report.ended({ wasOpen: isOpen, reason, nextAttemptMs, nextUrl, hasRules });
    }
  }

  /** Decisions and streams continue while it is examined. */
  function deliver(response: DiscoveryResponseMessage): void {
    isTaking = true;
    const atMs = clock.wallMs();
    void take(response.resources ?? [], atMs).then((intake) => {
      isTaking = false;
      if (closed) return;
      conclude(response, intake, atMs);
      const next = waiting.shift();
      if (next !== undefined) give({ kind: 'response', response: next });
    });
  }

  function conclude(
    { versionInfo = '', resources = [] }: DiscoveryResponseMessage,
    intake: Intake,
    atMs: number,
  ): void {
    const { digest } = intake;
    if (refused !== undefined && refused.digest === digest) {
      // Some servers resend refused responses for ever: logged only once.
      give({ kind: 'refused', text: refused.text });
      return;
    }
    inForce = intake.inForce;
    const ofVersion = `of version ${toShown(versionInfo)} from ${report.url}`;
    const total = resources.length;
    const taken = inForce.size - intake.kept.length;
    const { ruleSet, warnings, problems, kept } = intake;
    if (ruleSet !== undefined) {
      hasRules = true;
      const part = problems.length === 0 ? '' : `${taken} of `;
      const origin = `${part}${toCountText(total, 'resource')} ${ofVersion}`;
      const documents = [...inForce.values()].map(({ document }) => document);
      onLoad({ ok: true, ruleSet, documents, atMs, warnings, origin });
    }
    if (problems.length === 0) {
      refused = undefined;
      report.noteAccepted(versionInfo);
      give({ kind: 'accepted' });
      return;
    }
    onLoad({ ok: false, problems, origin: `${total - taken} of ${total} resources ${ofVersion}` });
    const text = toRefusalText(problems);
    refused = { digest, text };
    report.noteRefusal(versionInfo, text, kept);
    give({ kind: 'refused', text });
  }

  async function take(resources: readonly AnyMessage[], atMs: number): Promise<Intake> {
    try {
      const prepared = await parseLarge(await runInSlices(prepareResources(resources)));
      return await runInSlices(takeResources(intakeDeps, resources, inForce, atMs, prepared));
    } catch (error) {
      // The thread was closed meanwhile; then nothing is concluded.
      if (!closed) log.error(`Resources met a defect of the program: ${stackText(error)}`);
      const defect = `met a defect of the worker: ${errorText(error)}`;
      const problem = problemOf('error', 'program-defect', 'the response', defect);
      const kept = [...inForce.keys()];
      return { inForce, kept, ruleSet: undefined, warnings: [], problems: [problem], digest: '' };
    }
  }

  /** Before the first rules there are no decisions. */
  async function parseLarge(prepared: PreparedResources): Promise<PreparedResources> {
    if (!hasRules || parsingThread === undefined) return prepared;
    const parsed = new Map<AnyMessage, ParsedResource>();
    const known = new Set([...inForce.values()].map(({ digest }) => digest));
    for (const [index, { any, digest }] of prepared.digested.entries()) {
      const { value } = any;
      if (value === undefined || known.has(digest) || !isLargeResource(value)) continue;
      const shown = `resource ${index + 1} of the response`;
      const before = findReplaced(value, inForce);
      const { decode } = intakeDeps;
      parsed.set(any, await parsingThread.parseResource(value, shown, decode, before));
    }
    return { ...prepared, parsed };
  }

  return {
    async start(listener) {
      onLoad = listener;
      // Loaded here, because only a worker with a management server needs gRPC's client.
      openStream = (await import('../management-stream.ts')).openManagementStream;
      give({ kind: 'start' });
    },
    version: () => state.ackedVersion,
    onServer(listener) {
      onServer = listener;
    },
    lose(server, reason) {
      if (connection !== undefined && servers[state.server]?.url === server.url) endStream(reason);
    },
    describe: () => report.describe(),
    async close() {
      closed = true;
      cancelWait();
      report.close();
      connection?.close();
    },
  };
}

function toRefusalText(problems: readonly Problem[]): string {
  const text = formatProblems(problems.slice(0, maxRefusalProblems));
  const more = problems.length - maxRefusalProblems;
  return toExcerpt(more > 0 ? `${text}\nand ${more} more` : text, maxRefusalLength);
}

/**
 * This worker's node identity. `metadata` is comma-separated key=value items, each split at its first `=`; items without one are ignored
 * (behaviour: discovery-requests). Three items are added: the announcement of fields that the public message
 * lacks (behaviour: fields-of-our-own), `agreement`, by which workers are compared, and `instance`, by which
 * those with one id are told apart. An added item wins over a given one with the same key.
 */
function toAdsNode(worker: {
  readonly id: string;
  readonly metadata: string;
  readonly agreement: string;
  readonly instance: string;
}): NodeMessage {
  const { id, metadata, agreement, instance } = worker;
  const given = metadata
    .split(',')
    .filter((item) => item.includes('='))
    .map((item) => {
      const at = item.indexOf('=');
      return [item.slice(0, at), item.slice(at + 1)] as const;
    });
  const added = [
    extensionsAnnouncement,
    [agreementKey, agreement],
    [instanceKey, instance],
  ] as const;
  const fields = [...given, ...added].map(([key, value]) => [key, { stringValue: value }] as const);
  return { id, metadata: { fields: Object.fromEntries(fields) } };
}
