// Rules from a management server: runs the ADS client over connections and timers. ads-client.ts is the exchange itself
// and chooses the server, ads-resources.ts applies resources, ads-report.ts reports.

import { agreementKey } from '../../shared/agreement-key.ts';
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
import { stackText } from '../../shared/source-positions.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { type DiscoveryProtos, rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import type {
  AnyMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
  NodeMessage,
} from '../../shared/wire/discovery-messages.ts';
import type { Protos } from '../../shared/wire/protos.ts';
import type { BackoffOptions } from '../backoff.ts';
import type {
  ManagementServer,
  ManagementStream,
  OpenManagementStream,
} from '../management-stream.ts';
import type { Metrics } from '../metrics.ts';
import { type AdsAction, type AdsEvent, initialAdsState, stepAdsClient } from './ads-client.ts';
import { AdsReport, toShown } from './ads-report.ts';
import {
  applyResources,
  findReplaced,
  type Intake,
  type PreparedResources,
  prepareResources,
  type ResourcesInForce,
} from './ads-resources.ts';
import type { ParsedResource } from './parsed-resource.ts';
import { isLargeResource, type ParsingThread } from './parsing-thread.ts';
import type { LoadResult, RulesSource } from './source.ts';

/** The CONFIG_GRPC_XDS_* and XDS_CLIENT_* settings. */
export interface XdsSourceOptions {
  /** At least one; when one is lost, the next one is tried. */
  readonly servers: readonly [ManagementServer, ...ManagementServer[]];
  readonly nodeId: string;
  /** Comma-separated key=value items. */
  readonly nodeMetadata: string;
  /** The hash of the settings that must be the same on all workers that share a store. */
  readonly agreement: string;
  /** The wait after a failed attempt to connect. */
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
  /** Parses large resources after the first rules, when decisions may be running. */
  readonly parsingThread?: ParsingThread;
  readonly builder: RuleSetBuilder;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** The most problems in a refusal, which is one message; the log has all of them. */
const maxRefusalProblems = 20;
const maxRefusalLength = 8_192;

/** The most responses that wait while another one is examined. */
const maxWaiting = 8;

/** Valid rules stay in force whatever happens to the server. */
export class XdsSource implements RulesSource {
  readonly #deps: XdsSourceDeps;
  readonly #clientOptions;
  readonly #report;
  readonly #intakeDeps;
  #onLoad: (result: LoadResult) => void = () => {};
  #onServer: (server: ManagementServer) => void = () => {};
  #state = initialAdsState;
  #inForce: ResourcesInForce = new Map();
  #isApplying = false;
  /** Responses that arrived while another was examined. */
  #waiting: DiscoveryResponseMessage[] = [];
  /** The last refusal, unless a response was accepted since. */
  #refused: { readonly digest: string; readonly text: string } | undefined;
  #openStream: OpenManagementStream | undefined;
  #connection: ManagementStream<DiscoveryRequestMessage> | undefined;
  /** Ends the current stream as if it had ended by itself. */
  #endStream: (reason: string) => void = () => {};
  #cancelWait = () => {};
  #nextAttemptMs = 0;
  #hasRules = false;
  #closed = false;

  constructor(deps: XdsSourceDeps) {
    this.#deps = deps;
    this.#clientOptions = {
      node: toAdsNode({
        id: deps.options.nodeId,
        metadata: deps.options.nodeMetadata,
        agreement: deps.options.agreement,
        instance: deps.instance,
      }),
      typeUrl: rateLimitConfigTypeUrl,
      serverCount: deps.options.servers.length,
      backoff: deps.options.backoff,
      connectRetryMs: deps.options.connectRetryMs,
    };
    const urls = deps.options.servers.map(({ url }) => url);
    this.#report = new AdsReport({
      urls: urls,
      usesTls: deps.options.servers.some(({ tls }) => tls !== undefined),
      nodeId: deps.options.nodeId,
      metrics: deps.metrics,
      log: deps.log,
      clock: deps.clock,
    });
    this.#intakeDeps = {
      decode: (bytes: Buffer) => deps.protos.rateLimitConfig.deserialize(bytes),
      builder: deps.builder,
    };
  }

  #give(event: AdsEvent): void {
    if (this.#closed) return;
    const step = stepAdsClient(this.#clientOptions, this.#state, event);
    this.#state = step.state;
    for (const action of step.actions) this.#perform(action);
  }

  #perform(action: AdsAction): void {
    switch (action.kind) {
      case 'connect':
        this.#connect(action.server);
        break;
      case 'send':
        if (action.request.errorDetail) this.#report.refused();
        else if (action.request.responseNonce) this.#report.acknowledged();
        this.#connection?.send(action.request);
        break;
      case 'deliver':
        this.#deliver(action.response);
        break;
      case 'wait':
        this.#nextAttemptMs = action.delayMs;
        this.#cancelWait();
        this.#cancelWait = this.#deps.clock.after(action.delayMs, () =>
          this.#give({ kind: 'waited' }),
        );
        break;
    }
  }

  #connect(index: number): void {
    const server = this.#deps.options.servers[index] ?? this.#deps.options.servers[0];
    this.#report.connecting(server.url);
    let isOpen = false;
    const onEnd = (reason: string) => {
      this.#connection = undefined;
      this.#waiting = [];
      this.#give({ kind: isOpen ? 'ended' : 'connect-failed' });
      const nextUrl = this.#deps.options.servers[this.#state.server]?.url;
      this.#report.ended({
        wasOpen: isOpen,
        reason,
        nextAttemptMs: this.#nextAttemptMs,
        nextUrl,
        hasRules: this.#hasRules,
      });
    };
    this.#connection = this.#openStream?.({
      server,
      method: this.#deps.discovery.aggregated.StreamAggregatedResources,
      clock: this.#deps.clock,
      onOpen: () => {
        isOpen = true;
        this.#report.opened();
        this.#onServer(server);
        this.#give({ kind: 'opened' });
      },
      onResponse: (response) => {
        this.#report.received();
        if (!this.#isApplying) this.#give({ kind: 'response', response });
        // Each response is complete: when there are too many, only the newest ones are retained.
        else this.#waiting = [...this.#waiting, response].slice(-maxWaiting);
      },
      onEnd,
    });
    this.#endStream = (reason) => {
      this.#connection?.close();
      onEnd(reason);
    };
  }

  /** Examines a response, while decisions and streams continue. */
  #deliver(response: DiscoveryResponseMessage): void {
    this.#isApplying = true;
    const atMs = this.#deps.clock.wallMs();
    void this.#apply(response.resources ?? [], atMs).then((intake) => {
      this.#isApplying = false;
      if (this.#closed) return;
      this.#conclude(response, intake, atMs);
      const next = this.#waiting.shift();
      if (next !== undefined) this.#give({ kind: 'response', response: next });
    });
  }

  #conclude(
    { versionInfo = '', resources = [] }: DiscoveryResponseMessage,
    intake: Intake,
    atMs: number,
  ): void {
    const { digest } = intake;
    if (this.#refused !== undefined && this.#refused.digest === digest) {
      // Some servers resend a refused response for ever: the refusal is logged only once.
      this.#give({ kind: 'refused', text: this.#refused.text });
      return;
    }
    this.#inForce = intake.inForce;
    const ofVersion = `of version ${toShown(versionInfo)} from ${this.#report.url}`;
    const total = resources.length;
    const applied = this.#inForce.size - intake.retained.length;
    const { ruleSet, warnings, problems, retained } = intake;
    if (ruleSet !== undefined) {
      this.#hasRules = true;
      const part = problems.length === 0 ? '' : `${applied} of `;
      const origin = `${part}${toCountText(total, 'resource')} ${ofVersion}`;
      const documents = [...this.#inForce.values()].map(({ document }) => document);
      this.#onLoad({ ok: true, ruleSet, documents, atMs, warnings, origin });
    }
    if (problems.length === 0) {
      this.#refused = undefined;
      this.#report.noteAccepted(versionInfo);
      this.#give({ kind: 'accepted' });
      return;
    }
    this.#onLoad({
      ok: false,
      problems,
      origin: `${total - applied} of ${total} resources ${ofVersion}`,
    });
    const text = toRefusalText(problems);
    this.#refused = { digest, text };
    this.#report.noteRefusal(versionInfo, text, retained);
    this.#give({ kind: 'refused', text });
  }

  async #apply(resources: readonly AnyMessage[], atMs: number): Promise<Intake> {
    try {
      const prepared = await this.#parseLarge(await runInSlices(prepareResources(resources)));
      return await runInSlices(
        applyResources(this.#intakeDeps, resources, this.#inForce, atMs, prepared),
      );
    } catch (error) {
      // If the thread was closed meanwhile, no conclusion is possible.
      if (!this.#closed)
        this.#deps.log.error(`Resources triggered a defect in the program: ${stackText(error)}`);
      const defect = `caused a defect of the worker: ${errorText(error)}`;
      const problem = problemOf('error', 'program-defect', 'the response', defect);
      const retained = [...this.#inForce.keys()];
      return {
        inForce: this.#inForce,
        retained,
        ruleSet: undefined,
        warnings: [],
        problems: [problem],
        digest: '',
      };
    }
  }

  /** Does nothing before the first rules, when there are no decisions to delay. */
  async #parseLarge(prepared: PreparedResources): Promise<PreparedResources> {
    if (!this.#hasRules || this.#deps.parsingThread === undefined) return prepared;
    const parsed = new Map<AnyMessage, ParsedResource>();
    const known = new Set([...this.#inForce.values()].map(({ digest }) => digest));
    for (const [index, { any, digest }] of prepared.digested.entries()) {
      const { value } = any;
      if (value === undefined || known.has(digest) || !isLargeResource(value)) continue;
      const shown = `resource ${index + 1} of the response`;
      const before = findReplaced(value, this.#inForce);
      const { decode } = this.#intakeDeps;
      parsed.set(any, await this.#deps.parsingThread.parseResource(value, shown, decode, before));
    }
    return { ...prepared, parsed };
  }

  async start(listener: (result: LoadResult) => void): Promise<void> {
    this.#onLoad = listener;
    // Loaded here, because only a worker with a management server needs gRPC's client.
    this.#openStream = (await import('../management-stream.ts')).openManagementStream;
    this.#give({ kind: 'start' });
  }

  version(): string {
    return this.#state.ackedVersion;
  }

  onServer(listener: (server: ManagementServer) => void): void {
    this.#onServer = listener;
  }

  lose(server: ManagementServer, reason: string): void {
    if (
      this.#connection !== undefined &&
      this.#deps.options.servers[this.#state.server]?.url === server.url
    )
      this.#endStream(reason);
  }

  describe(): string {
    return this.#report.describe();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelWait();
    this.#report.close();
    this.#connection?.close();
  }
}

function toRefusalText(problems: readonly Problem[]): string {
  const text = formatProblems(problems.slice(0, maxRefusalProblems));
  const more = problems.length - maxRefusalProblems;
  return toExcerpt(more > 0 ? `${text}\nand ${more} more` : text, maxRefusalLength);
}

/**
 * This worker's node identity. `metadata` is comma-separated key=value items, each split at its first `=`; items
 * without one are ignored (behaviour: discovery-requests). Three items are added: the announcement of fields that the
 * public message lacks (behaviour: fields-of-our-own), `agreement`, by which workers are compared, and `instance`, by
 * which those with the same id are distinguished. An added item takes precedence over a given one with the same key.
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
