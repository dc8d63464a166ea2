// Tags within names of metrics. The characters of a name: shared/rules/lookup/metric-key.ts.
import type { Tags } from '../metrics.ts';

/** Without tags, so that it is found whatever the tags are (behaviour: statistic-names). */
export const untaggedName = 'reserved_tag';

/** Keys of tags that receivers set themselves (`reserved_tag`; behaviour: extra-tags). */
const reservedTags = new Set([
  'asg',
  'az',
  'backend',
  'canary',
  'host',
  'period',
  'region',
  'shard',
  'window',
  'source',
  'project',
  'facet',
  'envoyservice',
]);

/** The tags for all outputs: sorted by key, with `_` for characters that end a name or a tag, and without
 * tags that have an empty part (behaviour: extra-tags). */
export function toTagEntries(tags: Tags): readonly (readonly [key: string, value: string])[] {
  return Object.entries(tags)
    .filter(([key, value]) => key !== '' && value !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => [cleanTag(key, /[:|\p{Cc}]/gu), cleanTag(value, /[.:|\p{Cc}]/gu)]);
}

/** `.__key=value` for each tag. */
export function toTagSuffix(tags: Tags): string {
  return toTagEntries(tags)
    .map(([key, value]) => `.__${key}=${value}`)
    .join('');
}

/** A function that adds the tags of every metric, `common`, and a counter's own to a name, in one order. */
export function createNameTagger(common: Tags): (name: string, own?: Tags) => string {
  const suffix = toTagSuffix(common);
  return (name, own) => {
    if (name === untaggedName) return name;
    return name + (own === undefined ? suffix : toTagSuffix({ ...common, ...own }));
  };
}

/** How many of the tags have a key that receivers set themselves. */
export function countReservedTags(tags: Tags): number {
  return Object.keys(tags).filter((key) => reservedTags.has(key)).length;
}

function cleanTag(text: string, unwanted: RegExp): string {
  return text.replace(unwanted, '_');
}
