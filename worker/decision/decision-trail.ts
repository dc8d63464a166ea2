// The log of each decision at LOG_LEVEL=debug, step by step (behaviour: log-lines). It only exists when such lines are
// written: otherwise no texts are made.
import type { Log } from '../../shared/log.ts';
import type { DomainRules, Match } from '../../shared/rules/rule.ts';
import type { Hit } from '../counters/store.ts';
import type { RateLimitRequest, RateLimitResponse, RequestDescriptor } from './message.ts';
import { toEntriesText, toRequestText, toResponseText, toUnitName } from './message-text.ts';

export interface DecisionTrail {
  asked(request: RateLimitRequest): void;
  unknownDomain(request: RateLimitRequest): void;
  /** Logs the match of a descriptor, before one limit replaces another. */
  lookedUp(descriptor: RequestDescriptor, match: Match | undefined, rules: DomainRules): void;
  replaced(name: string): void;
  /** Logs that the local cache has this counter as over its limit. */
  knownOver(key: string, match: Match): void;
  counting(hits: readonly Hit[]): void;
  counted(hit: Hit, match: Match): void;
  answered(response: RateLimitResponse): void;
}

/** Undefined when the log writes no debug lines. */
export function createDecisionTrail(log: Log): DecisionTrail | undefined {
  if (!log.isDebug) return undefined;
  const lookingUp = (descriptor: RequestDescriptor) => {
    log.debug(`got descriptor: ${toEntriesText(descriptor)}`);
    log.debug('starting get limit lookup');
  };
  const logLookup = ({ entries }: RequestDescriptor, rules: DomainRules) => {
    for (const [index, { tried, hasLimit }] of rules.traceLookup(entries).entries()) {
      for (const key of tried) log.debug(`looking up key: ${key}`);
      if (hasLimit) log.debug(`found rate limit: ${tried.at(-1)}`);
      if (hasLimit && index < entries.length - 1) {
        log.debug(
          "request depth does not match config depth, there are more entries in the request's descriptor",
        );
      }
    }
  };
  const logShadowMode = ({ limit, metricKey }: Match) => {
    if (limit.shadowMode) log.debug(`Limit with key ${metricKey}, is in shadow_mode`);
  };
  return {
    asked: (request) => log.debug(`ShouldRateLimit: ${toRequestText(request)}`),
    unknownDomain({ domain, descriptors }) {
      for (const descriptor of descriptors) {
        lookingUp(descriptor);
        log.debug(`unknown domain '${domain}'`);
      }
    },
    lookedUp(descriptor, match, rules) {
      lookingUp(descriptor);
      // A limit in the request is not looked up.
      if (descriptor.limit === undefined) logLookup(descriptor, rules);
      if (match === undefined) {
        log.debug('descriptor does not match any limit, no limits applied');
        return;
      }
      log.debug(toVerdict(match));
    },
    replaced: (name) => log.debug(`replacing ${name}`),
    knownOver(key, match) {
      log.debug(`cache key is over the limit: ${key}`);
      logShadowMode(match);
    },
    counting(hits) {
      log.debug('starting cache lookup');
      for (const { key } of hits) log.debug(`looking up cache key: ${key}`);
    },
    counted(hit, match) {
      log.debug(`cache key: ${hit.key} current: ${hit.after} limit: ${hit.limit}`);
      if (!hit.refund && hit.after > hit.limit) logShadowMode(match);
    },
    answered: (response) => log.debug(`returning normal response: ${toResponseText(response)}`),
  };
}

function toVerdict({ limit }: Match): string {
  if (limit.unlimited) return 'descriptor is unlimited, not passing to the cache';
  const unit = toUnitName(limit.unit ?? 'second');
  return `applying limit: ${limit.requestsPerUnit} requests per ${unit}, shadow_mode: ${limit.shadowMode}, quota: ${limit.quotaMode}`;
}
