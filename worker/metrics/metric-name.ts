// Tags within metric names. shared/rules/lookup/metric-key.ts defines the characters of a name.
import type { Tags } from '../metrics.ts';

/** Has no tags itself, so that it is found whatever the tags are (behaviour: statistic-names). */
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

/**
 * The tags for all outputs: sorted by key, with `_` for characters that end a name or a tag, and without tags whose key
 * or value is empty (behaviour: extra-tags).
 */
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

/** Returns a function that adds the common tags of every metric and a counter's own tags to a name, sorted together. */
export function createNameTagger(common: Tags): (name: string, own?: Tags) => string {
  const suffix = toTagSuffix(common);
  return (name, own) => {
    if (name === untaggedName) return name;
    return name + (own === undefined ? suffix : toTagSuffix({ ...common, ...own }));
  };
}

/** How many tags have a key that receivers set themselves. */
export function countReservedTags(tags: Tags): number {
  return Object.keys(tags).filter((key) => reservedTags.has(key)).length;
}

function cleanTag(text: string, unwanted: RegExp): string {
  return text.replace(unwanted, '_');
}
