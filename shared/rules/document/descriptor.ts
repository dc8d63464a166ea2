// Reads the descriptors of a rules document, level by level, in the reference's order of checks
// (behaviour: rule-documents).

import { toExcerpt } from '../../text-excerpt.ts';
import { type RuleDescriptor, toCompositeKey, toUniqueName } from '../rule-document.ts';
import { readUntil } from '../rule-end.ts';
import { descriptorFlags, toFlags } from '../rule-keys.ts';
import type { MapReader } from '../yaml/map-reader.ts';
import { isEmptyList, type TreeMap } from '../yaml/yaml-node.ts';
import { describeJoined, type JoinedItem } from './joined-items.ts';
import {
  describeLimit,
  listJoinedLimits,
  readLimitList,
  readRateLimit,
} from './rate-limit-block.ts';
import { checkKeys, readList, readMetadata, readText } from './rule-fields.ts';
import { adviseOnText, adviseOnValue } from './text-advice.ts';

/**
 * Reads `descriptors`. `parentKey` is the domain and the composite keys above, joined by dots. `isLimitElsewhere`: a
 * limit has no effect where it is written, which has been reported.
 */
export function readDescriptors(
  fields: MapReader,
  parentKey: string,
  isLimitElsewhere = false,
): readonly RuleDescriptor[] {
  const limitedKeys = findLimitedKeys(fields);
  const level = { parentKey, firsts: new Map(), limitedKeys, isLimitElsewhere };
  return readList(fields, 'descriptors', (item) => readDescriptor(item, level));
}

interface Level {
  readonly parentKey: string;
  /** The first descriptor of each name on the level. */
  readonly firsts: Map<string, TreeMap>;
  readonly limitedKeys: ReadonlySet<string>;
  /** Whether a limit has no effect where it is written, which has been reported. */
  readonly isLimitElsewhere: boolean;
}

/** Keys for which a rule for all values or for a pattern has a limit, so that a rule for one value can be exempt. */
function findLimitedKeys(fields: MapReader): ReadonlySet<string> {
  const keys = new Set<string>();
  const list = fields.find('descriptors');
  for (const item of list?.kind === 'list' ? list.items : []) {
    if (item.kind !== 'map') continue;
    const [key, value] = ['key', 'value'].map((name) => item.entries.get(name)?.value);
    const isWide = value === undefined || !('source' in value) || value.source.includes('*');
    const isLimited =
      item.entries.has('rate_limit') ||
      item.entries.has('rate_limits') ||
      !isEmptyList(item, 'descriptors');
    if (isWide && isLimited && key !== undefined && 'source' in key) keys.add(key.source);
  }
  return keys;
}

function readDescriptor(
  fields: MapReader,
  { parentKey, firsts, limitedKeys, isLimitElsewhere }: Level,
): RuleDescriptor {
  const findings = checkKeys(fields, 'descriptor');
  const key = readText(fields, 'key');
  const value = readText(fields, 'value');
  const flags = toFlags(({ name }) => fields.flag(name) ?? false);
  const composite = toCompositeKey(key ?? '', value ?? '');
  const fullKey = `${parentKey}.${composite}`;
  const isNamed = key !== undefined && key !== '' && value !== undefined;
  if (key === '' && !findings.explainsAbsence('key')) {
    fields.error('empty-descriptor-key', 'key', 'descriptor has empty key', 'give it a key');
  }
  adviseOnText(fields, 'key', key);
  adviseOnText(fields, 'value', value);
  adviseOnValue(fields, key ?? '', value ?? '');
  const end = fields.given('until');
  const untilMs = end && readUntil(fields, end.node);
  const name = toUniqueName(composite, end !== undefined);
  if (isNamed) checkDuplicate(fields, name, fullKey, firsts);
  const limit = fields.map('rate_limit', describeLimit);
  const listed = limit === undefined ? readLimitList(fields) : undefined;
  const rateLimit = limit ? readRateLimit(limit, fields) : listed?.[0];
  if (limit !== undefined && fields.has('rate_limits')) {
    const message = 'a descriptor has either rate_limit or rate_limits';
    fields.error('limit-list', 'rate_limits', message, 'move the rate_limit into the list');
  }
  const isValueExplained = value === '' && findings.explainsAbsence('value');
  if (isNamed && flags.shareThreshold && !value.endsWith('*') && !isValueExplained) {
    const found = `but found key '${toExcerpt(composite)}'`;
    const message = `share_threshold can only be used with wildcard values (ending in '*'), ${found}`;
    const hint = describeSharing(value);
    fields.error('invalid-share-threshold', 'share_threshold', message, hint);
  }
  const metadata = readMetadata(fields);
  const hasLimit = fields.has('rate_limit') || fields.has('rate_limits');
  if (!hasLimit && !findings.isSuspect && !isLimitElsewhere)
    warnWithoutLimit(fields, isNamed && value !== '' && limitedKeys.has(key));
  return Object.freeze({
    key: key ?? '',
    value: value ?? '',
    rateLimit,
    furtherLimits: Object.freeze(listed?.slice(1) ?? []),
    ...flags,
    untilMs,
    metadata,
    descriptors: readDescriptors(fields, fullKey),
    position: fields.reporter.position(fields.node.offset),
  });
}

function checkDuplicate(
  fields: MapReader,
  name: string,
  fullKey: string,
  firsts: Map<string, TreeMap>,
): void {
  const { node, reporter } = fields;
  const first = firsts.get(name);
  if (first === undefined) {
    firsts.set(name, node);
    return;
  }
  const message = `duplicate descriptor composite key '${toExcerpt(fullKey, 200)}'`;
  const other = `the first one is at ${reporter.positionText(first.offset)}`;
  const isAlias = first.offset === node.offset;
  const hint = isAlias
    ? 'an alias repeats it'
    : `${other}; ${describeJoined([toJoinedItem(first), toJoinedItem(node)])}`;
  fields.errorOfAll('duplicate-descriptor', message, hint);
}

function toJoinedItem(item: TreeMap): JoinedItem {
  return { limits: listJoinedLimits(item), hasDescriptors: !isEmptyList(item, 'descriptors') };
}

/** The hint that replaces share_threshold beside a value that does not end in `*`. */
function describeSharing(value: string): string {
  const apart = 'remove share_threshold, and each value counts by itself';
  const star = value.indexOf('*');
  if (star === -1) return `${apart}; or give it a value that ends in '*'`;
  const shared = toExcerpt(value.slice(0, star + 1));
  return `${apart}; or write '${shared}', and all values that begin so count together`;
}

/**
 * Warns of settings that are legal on a descriptor without a limit of its own, but hardly ever intended. `isExempt`: it
 * takes a value out of a wider rule.
 */
function warnWithoutLimit(fields: MapReader, isExempt: boolean): void {
  const { node: map, path, reporter } = fields;
  if (isEmptyList(map, 'descriptors')) {
    if (isExempt) return;
    const message = 'this descriptor has neither rate_limit nor descriptors: it is never limited';
    const hint = 'if that is meant, write rate_limit: {unlimited: true}';
    reporter.advise('no-limit', map.offset, path, message, hint);
    return;
  }
  for (const { name, needsLimit } of descriptorFlags) {
    if (!needsLimit) continue;
    const entry = map.entries.get(name);
    if (entry?.value.kind !== 'bool' || entry.value.value !== true) continue;
    const message = `${name} has no effect on a descriptor without rate_limit`;
    const hint = 'it is not inherited: write it beside each rate_limit below';
    reporter.advise('flag-without-limit', entry.key.offset, fields.pathOf(name), message, hint);
  }
}
