// A machine-readable explanation. The shape is stable: fields may be added, but not changed or removed.

import { type Algorithm, describeShape, listShape } from '../../../shared/rules/limit-shape.ts';
import type { LocatedRule } from '../../../shared/rules/lookup/located-rule.ts';
import type { Limit } from '../../../shared/rules/rule.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { toModes } from '../../../shared/rules/rule-keys.ts';
import type { ExplainedDescriptor, MatchedRule } from './explained-request.ts';
import type { ExplainedLevel } from './lookup-explanation.ts';

export type ExplainedDescriptorJson = ReturnType<typeof toExplanationJson>['descriptors'][number];

export function toExplanationJson(domain: string, descriptors: readonly ExplainedDescriptor[]) {
  return {
    domain,
    descriptors: descriptors.map(({ entries, lookup, matched, untilMs, noMatch }) => ({
      entries,
      levels: lookup.levels.map(toLevel),
      verdict: lookup.verdict,
      until: untilMs === undefined ? null : toTimeText(untilMs),
      match: matched ? toMatch(matched) : null,
      noMatch: noMatch
        ? {
            reason: noMatch.reason,
            hint: noMatch.hint ?? null,
            nearest: noMatch.nearest ? toPosition(noMatch.nearest.rule) : null,
          }
        : null,
    })),
  };
}

function toLevel({ entry, candidates, othersCount, nearestKey }: ExplainedLevel) {
  return {
    entry,
    candidates: candidates.map(({ rule, kind, isChosen, reason }) => ({
      ...toPosition(rule),
      kind: kind ?? null,
      chosen: isChosen,
      reason,
    })),
    otherRules: othersCount,
    nearestKey: nearestKey ?? null,
  };
}

function toMatch({ rule, limit, replacedBy, sharers, counted: all }: MatchedRule) {
  const [counted, ...others] = all;
  return {
    rule: toPosition(rule),
    limit: toLimitJson(limit),
    /** Indexes of descriptors, from 0. */
    replacedBy,
    cacheKey: counted?.cacheKey ?? null,
    metricKey: counted?.metricKey ?? null,
    window: counted
      ? { start: counted.window.start, end: counted.window.start + counted.window.seconds }
      : null,
    // Rules by which requests with other values use up the same counter.
    ...(sharers.length > 0 && { sharedWith: sharers.map(toPosition) }),
    // The limits of a list after the first.
    ...(others.length > 0 && {
      furtherLimits: others.map((other) => ({
        limit: toLimitJson(other.limit),
        cacheKey: other.cacheKey,
        metricKey: other.metricKey,
      })),
    }),
  };
}

function toPosition({ composite, document, descriptor, path }: LocatedRule) {
  return {
    composite,
    file: document.file,
    line: descriptor.position?.line ?? null,
    column: descriptor.position?.column ?? null,
    path,
  };
}

/** An absent member has its usual value. */
interface ShapeJson {
  readonly unit_multiplier?: number;
  readonly algorithm?: Algorithm;
  readonly burst?: number;
  readonly count_over_limit?: boolean;
  readonly lease?: { readonly share: string; readonly for: string };
}

/** A limit as the commands print it with --json. */
export function toLimitJson(limit: Limit) {
  const { requestsPerUnit, unit, unlimited, name, replaces } = limit;
  return {
    requestsPerUnit: unlimited ? null : requestsPerUnit,
    unit: unit ?? null,
    text: unlimited ? 'unlimited' : describeShape(limit),
    ...(Object.fromEntries(listShape(limit)) as ShapeJson),
    unlimited,
    name: name || null,
    replaces,
    ...toModes((mode) => limit[mode]),
  };
}
