// Logs, metrics and status of the exchange with a management server, which xds-source.ts runs.
import type { Clock } from '../../shared/clock.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { Metrics } from '../metrics.ts';

export interface AdsReport {
  /** The address of the server that is asked. */
  readonly url: string;
  connecting(url: string): void;
  opened(): void;
  /** The connection ended or failed. */
  ended(end: AdsConnectionEnd): void;
  received(): void;
  acknowledged(): void;
  refused(): void;
  /** All of a version is in force. */
  noteAccepted(version: string): void;
  /** A version is not, or not entirely, in force; `kept` names what stays from earlier versions. */
  noteRefusal(version: string, text: string, kept: readonly string[]): void;
  /** Several lines for the debug port. */
  describe(): string;
  close(): void;
}

export interface AdsConnectionEnd {
  readonly wasOpen: boolean;
  readonly reason: string;
  readonly nextAttemptMs: number;
  /** The address of the server that is asked then. */
  readonly nextUrl: string | undefined;
  /** Whether earlier rules are in force. */
  readonly hasRules: boolean;
}

export interface AdsReportDeps {
  readonly urls: readonly string[];
  /** Whether these are connected to by TLS. */
  readonly usesTls: boolean;
  readonly nodeId: string;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** How often lasting trouble is logged, with a count. */
const troubleIntervalMs = 10_000;

/** After this long on an open stream without any rules a warning is logged. */
const silenceMs = 5_000;

/** Limit of listed names. */
const maxNames = 20;

export function createAdsReport(deps: AdsReportDeps): AdsReport {
  const { urls, nodeId, metrics, log, clock } = deps;
  let [url = ''] = urls;
  const isConnected = metrics.gauge('ratelimit.xds.connected');
  const responses = metrics.counter('ratelimit.xds.responses');
  const acks = metrics.counter('ratelimit.xds.acks');
  const nacks = metrics.counter('ratelimit.xds.nacks');
  const reconnects = metrics.counter('ratelimit.xds.reconnects');
  const node = toShown(nodeId);
  const trouble = createRepeatedLog({
    clock,
    intervalMs: troubleIntervalMs,
    write: (text) => log.error(text),
  });
  let link = 'not connected yet';
  /** Undefined while connected, and before the first connection. */
  let lostAt: string | undefined;
  let accepted = 'none yet';
  let refusal = 'none';
  let keptNames: readonly string[] = [];
  let isFirstAttempt = true;
  let isSilent = true;
  let cancelSilence = () => {};

  function now(): string {
    return new Date(clock.wallMs()).toISOString();
  }

  function watchSilence(): void {
    cancelSilence = clock.after(silenceMs, () =>
      log.warning(
        `The management server ${url} has sent nothing for node ${node}: still waiting for rules; ` +
          'if it does not know this node, set CONFIG_GRPC_XDS_NODE_ID to one that it knows',
      ),
    );
  }

  return {
    get url() {
      return url;
    },
    connecting(asked) {
      url = asked;
      if (!isFirstAttempt) reconnects.add(1);
      isFirstAttempt = false;
      log.info(`Connecting to the management server ${url} as node ${node}`);
    },
    opened() {
      isConnected.set(1);
      lostAt = undefined;
      link = `connected since ${now()}`;
      const outage = trouble.recover();
      const text = `Connected to the management server ${url}`;
      if (outage === undefined) log.info(text);
      else log.notice(`${text} after ${formatDuration(Math.round(outage.seconds) * 1000)}`);
      // Later a server without changes sends nothing.
      if (isSilent) watchSilence();
    },
    ended({ wasOpen, reason, nextAttemptMs, nextUrl, hasRules }) {
      isConnected.set(0);
      cancelSilence();
      const why = toExcerpt(reason, 500);
      if (wasOpen) lostAt = now();
      const since = lostAt === undefined ? 'yet' : `since ${lostAt}`;
      link = `not connected ${since}, last attempt failed at ${now()}: ${why}`;
      const what = wasOpen ? 'Lost' : 'Could not reach';
      const wait = formatDuration(Math.round(nextAttemptMs));
      const next =
        nextAttemptMs === 0
          ? `the next attempt is at ${nextUrl}, at once`
          : `next attempt in ${wait}${nextUrl === url ? '' : `, at ${nextUrl}`}`;
      const rules = hasRules ? 'the rules in force stay' : 'there are no rules yet';
      const setting = findSetting(reason, wasOpen, deps.usesTls);
      const hint = setting === undefined ? '' : ` (${setting})`;
      trouble.report(`${what} the management server ${url}: ${why}; ${next}, ${rules}${hint}`);
    },
    received() {
      responses.add(1);
      isSilent = false;
      cancelSilence();
    },
    acknowledged() {
      acks.add(1);
    },
    refused() {
      nacks.add(1);
    },
    noteAccepted(version) {
      accepted = `${toShown(version)} at ${now()}`;
      keptNames = [];
    },
    noteRefusal(version, text, kept) {
      refusal = `version ${toShown(version)} at ${now()}\n${text}`;
      keptNames = kept;
    },
    describe() {
      const lines = [
        `management server ${url} as node ${node}, ${link}${isSilent ? ', nothing received yet' : ''}`,
        ...(urls.length > 1 ? [`management servers to choose from: ${urls.join(', ')}`] : []),
        `last version accepted: ${accepted}`,
        `last refusal: ${refusal}`,
      ];
      if (keptNames.length > 0)
        lines.push(`in force from earlier versions: ${listNames(keptNames)}`);
      return lines.join('\n');
    },
    close() {
      cancelSilence();
    },
  };
}

/** Text from outside, in quotes. */
export function toShown(text: string): string {
  return JSON.stringify(toExcerpt(text));
}

function listNames(names: readonly string[]): string {
  const shown = names.slice(0, maxNames).map(toShown).join(', ');
  return names.length > maxNames ? `${shown} and ${names.length - maxNames} more` : shown;
}

/** The setting to look at. */
function findSetting(reason: string, wasOpen: boolean, usesTls: boolean): string | undefined {
  if (/^UNAUTHENTICATED\b/.test(reason)) {
    return 'CONFIG_GRPC_XDS_TOKEN_FILE names the file of a token that it knows';
  }
  if (wasOpen) return undefined;
  const where = 'CONFIG_GRPC_XDS_SERVER_URL says where it is';
  // Somebody listens there, and ends the connection without a word.
  const isAnswered = /Failed to connect|ECONNRESET|socket hang up/.test(reason);
  return isAnswered && !usesTls
    ? `${where}; if it has TLS, set CONFIG_GRPC_XDS_SERVER_USE_TLS=true`
    : where;
}
