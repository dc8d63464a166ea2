// Logs, metrics and status of the exchange with a management server, which xds-source.ts runs.
import type { Clock } from '../../shared/clock.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { Metrics } from '../metrics.ts';

export interface AdsConnectionEnd {
  readonly wasOpen: boolean;
  readonly reason: string;
  readonly nextAttemptMs: number;
  /** The address of the server that is tried then. */
  readonly nextUrl: string | undefined;
  /** Whether earlier rules are in force. */
  readonly hasRules: boolean;
}

export interface AdsReportDeps {
  readonly urls: readonly string[];
  /** Whether the connections to the servers use TLS. */
  readonly usesTls: boolean;
  readonly nodeId: string;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** How often a lasting error is logged, with a count. */
const problemIntervalMs = 10_000;

/** A warning is logged when an open stream has no rules for this long. */
const silenceMs = 5_000;

/** Limit of the names in a list. */
const maxNames = 20;

export class AdsReport {
  readonly #deps: AdsReportDeps;
  /** The address of the current server. */
  #url: string;
  readonly #isConnected;
  readonly #responses;
  readonly #acks;
  readonly #nacks;
  readonly #reconnects;
  readonly #node;
  readonly #problem;
  #link = 'not connected yet';
  /** Undefined while connected, and before the first connection. */
  #lostAt: string | undefined;
  #accepted = 'none yet';
  #refusal = 'none';
  #retainedNames: readonly string[] = [];
  #isFirstAttempt = true;
  #isSilent = true;
  #cancelSilence = () => {};

  constructor(deps: AdsReportDeps) {
    this.#deps = deps;
    [this.#url = ''] = deps.urls;
    this.#isConnected = deps.metrics.gauge('ratelimit.xds.connected');
    this.#responses = deps.metrics.counter('ratelimit.xds.responses');
    this.#acks = deps.metrics.counter('ratelimit.xds.acks');
    this.#nacks = deps.metrics.counter('ratelimit.xds.nacks');
    this.#reconnects = deps.metrics.counter('ratelimit.xds.reconnects');
    this.#node = toShown(deps.nodeId);
    this.#problem = createRepeatedLog({
      clock: deps.clock,
      intervalMs: problemIntervalMs,
      write: (text) => deps.log.error(text),
    });
  }

  #now(): string {
    return new Date(this.#deps.clock.wallMs()).toISOString();
  }

  #watchSilence(): void {
    this.#cancelSilence = this.#deps.clock.after(silenceMs, () =>
      this.#deps.log.warning(
        `The management server ${this.#url} has sent nothing for node ${this.#node}: still waiting for rules; ` +
          'if it does not know this node, set CONFIG_GRPC_XDS_NODE_ID to one that it knows',
      ),
    );
  }

  /** The address of the current server. */
  get url(): string {
    return this.#url;
  }

  connecting(asked: string): void {
    this.#url = asked;
    if (!this.#isFirstAttempt) this.#reconnects.add(1);
    this.#isFirstAttempt = false;
    this.#deps.log.info(`Connecting to the management server ${this.#url} as node ${this.#node}`);
  }

  opened(): void {
    this.#isConnected.set(1);
    this.#lostAt = undefined;
    this.#link = `connected since ${this.#now()}`;
    const outage = this.#problem.recover();
    const text = `Connected to the management server ${this.#url}`;
    if (outage === undefined) this.#deps.log.info(text);
    else
      this.#deps.log.notice(`${text} after ${formatDuration(Math.round(outage.seconds) * 1000)}`);
    // After the first rules, a server without changes sends nothing.
    if (this.#isSilent) this.#watchSilence();
  }

  /** Call it when the connection ended or failed. */
  ended({ wasOpen, reason, nextAttemptMs, nextUrl, hasRules }: AdsConnectionEnd): void {
    this.#isConnected.set(0);
    this.#cancelSilence();
    const why = toExcerpt(reason, 500);
    if (wasOpen) this.#lostAt = this.#now();
    const since = this.#lostAt === undefined ? 'yet' : `since ${this.#lostAt}`;
    this.#link = `not connected ${since}, last attempt failed at ${this.#now()}: ${why}`;
    const what = wasOpen ? 'Lost' : 'Could not reach';
    const wait = formatDuration(Math.round(nextAttemptMs));
    const next =
      nextAttemptMs === 0
        ? `the next attempt is at ${nextUrl}, at once`
        : `next attempt in ${wait}${nextUrl === this.#url ? '' : `, at ${nextUrl}`}`;
    const rules = hasRules ? 'the rules in force stay' : 'there are no rules yet';
    const setting = findSetting(reason, wasOpen, this.#deps.usesTls);
    const hint = setting === undefined ? '' : ` (${setting})`;
    this.#problem.report(
      `${what} the management server ${this.#url}: ${why}; ${next}, ${rules}${hint}`,
    );
  }

  received(): void {
    this.#responses.add(1);
    this.#isSilent = false;
    this.#cancelSilence();
  }

  acknowledged(): void {
    this.#acks.add(1);
  }

  refused(): void {
    this.#nacks.add(1);
  }

  /** Call it when all of a version is in force. */
  noteAccepted(version: string): void {
    this.#accepted = `${toShown(version)} at ${this.#now()}`;
    this.#retainedNames = [];
  }

  /** Call it when a version is not, or only partly, in force; `retained` names what remains from earlier versions. */
  noteRefusal(version: string, text: string, retained: readonly string[]): void {
    this.#refusal = `version ${toShown(version)} at ${this.#now()}\n${text}`;
    this.#retainedNames = retained;
  }

  /** Several lines for the debug port. */
  describe(): string {
    const lines = [
      `management server ${this.#url} as node ${this.#node}, ${this.#link}${this.#isSilent ? ', nothing received yet' : ''}`,
      ...(this.#deps.urls.length > 1
        ? [`management servers to choose from: ${this.#deps.urls.join(', ')}`]
        : []),
      `last version accepted: ${this.#accepted}`,
      `last refusal: ${this.#refusal}`,
    ];
    if (this.#retainedNames.length > 0)
      lines.push(`in force from earlier versions: ${listNames(this.#retainedNames)}`);
    return lines.join('\n');
  }

  close(): void {
    this.#cancelSilence();
  }
}

/** Quotes text from outside. */
export function toShown(text: string): string {
  return JSON.stringify(toExcerpt(text));
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, maxNames).map(toShown).join(', ');
  return names.length > maxNames ? `${shown} and ${names.length - maxNames} more` : shown;
}

/** The setting to check. */
function findSetting(reason: string, wasOpen: boolean, usesTls: boolean): string | undefined {
  if (/^UNAUTHENTICATED\b/.test(reason)) {
    return 'set CONFIG_GRPC_XDS_TOKEN_FILE to a file with a token that it accepts';
  }
  if (wasOpen) return undefined;
  const where = 'check CONFIG_GRPC_XDS_SERVER_URL';
  // The server accepts connections, but ends this one without a reason.
  const isAnswered = /Failed to connect|ECONNRESET|socket hang up/.test(reason);
  return isAnswered && !usesTls
    ? `${where}; if it has TLS, set CONFIG_GRPC_XDS_SERVER_USE_TLS=true`
    : where;
}
