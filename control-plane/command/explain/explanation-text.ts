// Formats an explanation as text.

import { toCountText } from '../../../shared/count-text.ts';
import { didYouMean } from '../../../shared/nearest-word.ts';
import { describeShape } from '../../../shared/rules/limit-shape.ts';
import { toPositionText } from '../../../shared/rules/lookup/located-rule.ts';
import type { NoMatch } from '../../../shared/rules/lookup/nearest-rule.ts';
import { escapeText } from '../../../shared/rules/problem/escaped-text.ts';
import type { Entry, Limit } from '../../../shared/rules/rule.ts';
import { describeEnd } from '../../../shared/rules/rule-end.ts';
import { limitModes } from '../../../shared/rules/rule-keys.ts';
import type {
  ExplainedDescriptor,
  MatchedRule,
} from '../../authoring/explain/explained-request.ts';
import type { Candidate, ExplainedLevel } from '../../authoring/explain/lookup-explanation.ts';

/** Lines with their line breaks. `nowMs`: wall time. */
export function formatExplanation(
  domain: string,
  descriptors: readonly ExplainedDescriptor[],
  nowMs: number,
): string {
  const isOne = descriptors.length === 1;
  const parts = descriptors.map((each, index) => {
    const number = isOne ? '' : ` ${index + 1}`;
    const lines = [
      `descriptor${number} of domain ${domain}: ${each.entries.map(toPair).join(', ')}`,
      ...each.lookup.levels.flatMap(formatLevel),
      `  result: ${each.lookup.verdict}`,
      ...formatEnd(each, nowMs),
      ...(each.matched ? formatMatched(each.matched) : []),
      ...(each.noMatch ? formatNoMatch(each.noMatch) : []),
    ];
    return lines.map((line) => `${escapeText(line)}\n`).join('');
  });
  return parts.join('\n');
}

function toPair({ key, value }: Entry): string {
  return `${key}=${value}`;
}

function formatLevel(level: ExplainedLevel, index: number): string[] {
  const { entry, candidates, othersCount, nearestKey } = level;
  const lines = [`  entry ${index + 1}: ${toPair(entry)}`, ...candidates.map(formatCandidate)];
  if (candidates.length === 0) {
    const hint = didYouMean(nearestKey, '; ') ?? '';
    lines.push(`      no rule here has the key '${entry.key}'${hint}`);
  } else if (othersCount > 0) {
    lines.push(`      and ${toCountText(othersCount, 'rule')} for other keys and values`);
  }
  return lines;
}

const kindWords = { exact: 'exact', wildcard: 'wildcard', key_only: 'any value' } as const;

function formatCandidate({ rule, kind, isChosen, reason }: Candidate): string {
  const word = kind === undefined ? 'no match' : kindWords[kind];
  return `    ${isChosen ? '>' : ' '} ${word.padEnd(9)} ${rule.composite}  (${toPositionText(rule)}): ${reason}`;
}

function formatMatched({ rule, limit, replacedBy, sharers, counted }: MatchedRule): string[] {
  const isList = counted.length > 1;
  const lines = [`  rule: ${toPositionText(rule)} (${rule.path})`];
  if (!isList) lines.push(`  limit: ${toLimitText(limit)}`);
  if (replacedBy.length > 0) {
    const by = replacedBy.map((number) => number + 1).join(' and ');
    lines.push(`  replaced by the rule of descriptor ${by}: it does not apply, nothing is counted`);
  }
  if (limit.replaces.length > 0) {
    lines.push(`  replaces, in the same request: ${limit.replaces.join(', ')}`);
  }
  for (const { name, property, explained } of limitModes) {
    if (limit[property]) lines.push(`  ${name.replaceAll('_', ' ')}: ${explained}`);
  }
  for (const each of counted) {
    const { start, seconds } = each.window;
    if (isList) lines.push(`  limit: ${toLimitText(each.limit)}`);
    lines.push(`  cache key: ${each.cacheKey}`, `  metric key: ${each.metricKey}`);
    // A bucket has no window.
    if (each.limit.algorithm !== 'token_bucket') {
      lines.push(`  window: ${toTime(start)} to ${toTime(start + seconds)}`);
    }
  }
  for (const sharer of sharers) {
    const by = sharer === rule ? 'this rule' : `the rule at ${toPositionText(sharer)}`;
    lines.push(`  shared: requests with other values that ${by} matches count under the same key`);
  }
  if (limit.unlimited) lines.push('  answered without counting: no cache key, no statistics');
  return lines;
}

/** A lift is written as an unlimited rule with an end. */
function formatEnd({ untilMs, matched }: ExplainedDescriptor, nowMs: number): string[] {
  if (untilMs === undefined) return [];
  const what = matched?.limit.unlimited ? 'lifted' : 'in force';
  return [`  ${what} ${describeEnd(untilMs, nowMs)}: after it this rule does not exist`];
}

function formatNoMatch({ reason, hint, nearest }: NoMatch): string[] {
  const lines = [`  why: ${reason}`];
  if (hint !== undefined) lines.push(`  hint: ${hint}`);
  if (nearest !== undefined) lines.push(`  nearest rule: ${toPositionText(nearest.rule)}`);
  return lines;
}

function toLimitText(limit: Limit): string {
  const { unlimited, requestsPerUnit, name } = limit;
  const named = name === '' ? '' : `, named ${name}`;
  if (unlimited) return `unlimited${named}`;
  const blocks = requestsPerUnit === 0 ? ', which rejects every request' : '';
  return `${describeShape(limit)}${blocks}${named}`;
}

function toTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace('.000', '');
}
