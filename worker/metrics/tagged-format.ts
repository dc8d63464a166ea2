// The lines of the tagged output: `name:value|type|#tag:value,...`, with names rewritten by the mogrifiers (behaviour:
// tagged-lines).

import { sanitizeMetricName } from '../../shared/rules/lookup/metric-key.ts';
import type { Tags } from '../metrics.ts';
import type { LineFormat } from './line-sink.ts';
import { toTagEntries, untaggedName } from './metric-name.ts';
import type { Found, Pattern } from './regular-expression.ts';
import { toDecimal } from './statsd-format.ts';

/** Renames metrics whose name matches, and adds tags. */
export interface NameRewrite {
  /** Matches anywhere in the name. */
  readonly pattern: Pattern;
  /** `$1` is replaced by a group, `$0` by the whole match. */
  readonly metricName: string;
  /** Values may contain `$1` as in `metricName`. */
  readonly tags: Tags;
}

export interface TaggedFormatOptions {
  /** The first match wins. */
  readonly rewrites: readonly NameRewrite[];
  /** Tags of every metric. */
  readonly tags: Tags;
}

interface Label {
  readonly name: string;
  /** `|#` and the tags; '' without any. */
  readonly tags: string;
}

/** How many rewritten names are cached, so that a flush matches no patterns. */
const maxRemembered = 20_000;

export function createTaggedFormat({ rewrites, tags }: TaggedFormatOptions): LineFormat {
  const common = toTagTexts(tags);
  const commonTags = toTagText(common);
  const remembered = new Map<string, Label>();

  function toLabel(name: string, own?: Tags): Label {
    if (own !== undefined) return rewrite(name, toTagTexts({ ...tags, ...own }), rewrites);
    if (rewrites.length === 0) return { name, tags: name === untaggedName ? '' : commonTags };
    let label = remembered.get(name);
    if (label === undefined) {
      if (remembered.size >= maxRemembered) remembered.clear();
      label = rewrite(name, name === untaggedName ? [] : common, rewrites);
      remembered.set(name, label);
    }
    return label;
  }

  const toLine = (name: string, value: string, type: string, own?: Tags): string => {
    const label = toLabel(name, own);
    return `${label.name}:${value}|${type}${label.tags}\n`;
  };
  return {
    counter: (name, delta, own) => toLine(name, toDecimal(delta), 'c', own),
    gauge: (name, value) => toLine(name, toDecimal(value), 'g'),
    timer: (name, ms) => toLine(name, ms.toFixed(6), 'ms'),
    flushed: () => '',
  };
}

function rewrite(name: string, common: readonly string[], rewrites: readonly NameRewrite[]): Label {
  for (const { pattern, metricName, tags } of rewrites) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const own = Object.entries(tags).map(
      ([key, value]) => `${cleanTag(key)}:${cleanTag(fillGroups(value, match))}`,
    );
    return {
      name: sanitizeMetricName(fillGroups(metricName, match)),
      tags: toTagText([...common, ...own]),
    };
  }
  return { name, tags: toTagText(common) };
}

function toTagTexts(tags: Tags): string[] {
  return toTagEntries(tags).map(([key, value]) => `${key}:${value}`);
}

function toTagText(tags: readonly string[]): string {
  return tags.length === 0 ? '' : `|#${tags.join(',')}`;
}

/** A group that is not in the pattern stays unchanged, one without a match is empty. */
function fillGroups(template: string, match: Found): string {
  return template.replace(/\$(\d+)/g, (text, digits: string) =>
    Number(digits) < match.length ? (match[Number(digits)] ?? '') : text,
  );
}

/** A comma would begin another tag, and values come from requests. */
function cleanTag(text: string): string {
  return text.replace(/[,|\p{Cc}\u2028\u2029]/gu, '_');
}
