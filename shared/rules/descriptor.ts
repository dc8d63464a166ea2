// Reads the descriptors of a rules document, level by level, in the reference's order of checks
// (behaviour: rule-documents).

import { toCountText } from '../count-text.ts';
import { didYouMean } from '../nearest-word.ts';
import { toExcerpt } from '../text-excerpt.ts';
import {
  type Algorithm,
  algorithms,
  describeTime,
  type Lease,
  type LimitShape,
  windowSecondsOf,
} from './limit-shape.ts';
import { listOf, type MapReader } from './map-reader.ts';
import { describeRepairedWord, withoutOddCharacters } from './odd-character.ts';
import {
  type RateLimitBlock,
  type Replacement,
  type RuleDescriptor,
  toCompositeKey,
} from './rule-document.ts';
import { checkKeys, type KeyFindings, readList, readMetadata, readText } from './rule-fields.ts';
import { descriptorFlags, maxCount, toFlags } from './rule-keys.ts';
import { adviseOnText } from './text-advice.ts';
import { type Unit, units } from './unit.ts';
import { isEmptyList, type TreeNode } from './yaml-node.ts';

/** Reads `descriptors`. `parentKey` is the domain and the composite keys above, joined by dots. */
export function readDescriptors(fields: MapReader, parentKey: string): readonly RuleDescriptor[] {
  const level = { parentKey, firstOffsets: new Map(), limitedKeys: findLimitedKeys(fields) };
  return readList(fields, 'descriptors', (item) => readDescriptor(item, level));
}

interface Level {
  readonly parentKey: string;
  /** By composite key. */
  readonly firstOffsets: Map<string, number>;
  readonly limitedKeys: ReadonlySet<string>;
}

/** Keys of which a rule for all values or for a pattern has a limit, so that one value can be exempt. */
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
  { parentKey, firstOffsets, limitedKeys }: Level,
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
  if (isNamed) checkDuplicate(fields, composite, fullKey, firstOffsets);
  const limit = fields.map('rate_limit', describeLimit);
  const listed = limit === undefined ? readLimitList(fields) : undefined;
  const rateLimit = limit ? readRateLimit(limit, fields) : listed?.[0];
  if (limit !== undefined && fields.has('rate_limits')) {
    const message = 'a descriptor has either rate_limit or rate_limits';
    fields.error('limit-list', 'rate_limits', message, 'move the rate_limit into the list');
  }
  if (isNamed && flags.shareThreshold && !value.endsWith('*')) {
    const found = `but found key '${toExcerpt(composite)}'`;
    const message = `share_threshold can only be used with wildcard values (ending in '*'), ${found}`;
    const hint = "remove share_threshold, or give the descriptor a value that ends in '*'";
    fields.error('invalid-share-threshold', 'share_threshold', message, hint);
  }
  const metadata = readMetadata(fields);
  if (!limit && !fields.has('rate_limit') && !fields.has('rate_limits') && !findings.isSuspect)
    warnWithoutLimit(fields, isNamed && value !== '' && limitedKeys.has(key));
  return Object.freeze({
    key: key ?? '',
    value: value ?? '',
    rateLimit,
    furtherLimits: Object.freeze(listed?.slice(1) ?? []),
    ...flags,
    metadata,
    descriptors: readDescriptors(fields, fullKey),
    position: fields.reporter.position(fields.node.offset),
  });
}

/** A hint that shows the mapping, with the numbers of a text such as `10/minute`. */
function describeLimit(node: TreeNode): string {
  const source = 'source' in node ? node.source : '';
  const [, count = '3', unit = 'minute'] =
    /^(\d{1,9}) ?(?:\/|per) ?([a-z]+?)s?$/i.exec(source) ?? [];
  return `write it as a mapping: {unit: ${unit}, requests_per_unit: ${count}}`;
}

function checkDuplicate(
  fields: MapReader,
  composite: string,
  fullKey: string,
  firstOffsets: Map<string, number>,
): void {
  const { offset } = fields.node;
  const first = firstOffsets.get(composite);
  if (first === undefined) {
    firstOffsets.set(composite, offset);
    return;
  }
  const message = `duplicate descriptor composite key '${toExcerpt(fullKey, 200)}'`;
  const other = `the first one is at ${fields.reporter.place(first)}`;
  const hint = first === offset ? 'an alias repeats it' : other;
  fields.errorOfAll('duplicate-descriptor', message, hint);
}

/** Warns of what is legal on a descriptor without a limit of its own, and hardly ever meant. `isExempt`:
 * it takes a value out of a wider rule. */
function warnWithoutLimit(fields: MapReader, isExempt: boolean): void {
  const { node: map, path, reporter } = fields;
  if (isEmptyList(map, 'descriptors')) {
    if (isExempt) return;
    const message = 'this descriptor has neither rate_limit nor descriptors: it is never limited';
    const hint = 'if that is meant, write rate_limit: {unlimited: true} to say so';
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

function readRateLimit(fields: MapReader, descriptor: MapReader): RateLimitBlock {
  const findings = checkKeys(fields, 'rate_limit');
  const unlimited = fields.flag('unlimited');
  const unitText = readText(fields, 'unit');
  const unit = units.find((known) => known === unitText?.toLowerCase());
  const count = fields.count('requests_per_unit', maxCount);
  const shape = readShape(fields, unit);
  if (unlimited === true && unit !== undefined) {
    const message = 'should not specify rate limit unit when unlimited';
    fields.error('unit-when-unlimited', 'unit', message, 'remove either unlimited or unit');
  }
  if (unlimited === true) refuseIdleKeys(fields, shapeKeys, 'when unlimited', 'remove it');
  if (unlimited === false) {
    if (unitText !== undefined && unit === undefined) {
      reportUnit(unitText, fields, descriptor, findings);
    }
    checkCount(count, fields, descriptor, findings);
  }
  const name = readText(fields, 'name') ?? '';
  return Object.freeze({
    unit: unlimited === true ? undefined : unit,
    requestsPerUnit: count ?? 0,
    ...shape,
    unlimited: unlimited ?? false,
    name,
    replaces: readList(fields, 'replaces', (item) => readReplacement(item, name)),
  });
}

const leastListed = 2;
const mostListed = 8;

/** The limits of `rate_limits`; undefined when there is no list. */
function readLimitList(descriptor: MapReader): readonly RateLimitBlock[] | undefined {
  if (!descriptor.has('rate_limits')) return undefined;
  const items = descriptor.maps('rate_limits');
  const list = descriptor.items('rate_limits');
  if (list.length < leastListed || list.length > mostListed) {
    const message = `rate_limits has ${toCountText(list.length, 'limit')}, not ${leastListed} to ${mostListed}`;
    const hint = list.length === 1 ? 'write it as rate_limit' : undefined;
    descriptor.error('limit-list', 'rate_limits', message, hint);
  }
  const seen = new Set<string>();
  return items.map((item) => {
    const limit = readRateLimit(item, descriptor);
    const kind = `${windowSecondsOf(limit)} ${limit.algorithm}`;
    if (limit.lease !== undefined) {
      item.error('limit-list', 'lease', 'a limit of a list has no lease', 'remove it');
    }
    if (limit.unlimited) {
      item.error('limit-list', 'unlimited', 'a limit of a list cannot be unlimited', 'remove it');
    } else if (limit.unit !== undefined && seen.has(kind)) {
      const message = `rate_limits has two limits per ${describeTime(limit)} with ${limit.algorithm}`;
      item.errorOfAll('limit-list', message, 'keep the one with fewer requests_per_unit');
    }
    seen.add(kind);
    return limit;
  });
}

const shapeKeys = ['unit_multiplier', 'algorithm', 'burst', 'count_over_limit', 'lease'] as const;
const longestWindowSeconds = 100 * 365 * 86_400;

/** The fields of a limit beside unit and number. */
function readShape(
  fields: MapReader,
  unit: Unit | undefined,
): Omit<LimitShape, 'unit' | 'requestsPerUnit'> {
  const unitMultiplier = fields.count('unit_multiplier', maxCount, 1) ?? 1;
  const algorithm = readAlgorithm(fields);
  const burst = fields.count('burst', maxCount, 1);
  const countOverLimit = fields.flag('count_over_limit') ?? false;
  const windowSeconds = windowSecondsOf({ unit, unitMultiplier });
  // Without a unit a problem has already been reported.
  const lease = readLease(fields, unit === undefined ? undefined : windowSeconds);
  if (windowSeconds > longestWindowSeconds) {
    const message = `a window of ${unitMultiplier} ${unit}s is longer than 100 years`;
    fields.error('window-too-long', 'unit_multiplier', message, 'write a smaller unit_multiplier');
  }
  if (algorithm === 'sliding_window') {
    refuseIdleKeys(fields, ['burst'], `with ${algorithm}`, 'it is for algorithm: token_bucket');
  } else if (algorithm === 'fixed_window') {
    const idle = ['burst', 'count_over_limit'] as const;
    const hint = 'write algorithm: token_bucket beside it, or remove it';
    refuseIdleKeys(fields, idle, `with ${algorithm}`, hint);
  }
  return { unitMultiplier, algorithm: algorithm ?? 'fixed_window', burst, countOverLimit, lease };
}

const mostShare = 50;
const [shortestLeaseMs, longestLeaseMs] = [50, 10_000];
/** A window is at least so many leases long. */
const leasesOfWindow = 10;

function readLease(limit: MapReader, windowSeconds: number | undefined): Lease | undefined {
  const fields = limit.map('lease', () => 'write it as a mapping: {share: 5%, for: 1s}');
  if (fields === undefined) return undefined;
  checkKeys(fields, 'lease');
  const share = readText(fields, 'share') ?? '';
  const percent = /^\d{1,2}(?:\.\d{1,6})?%$/.test(share) ? Number.parseFloat(share) : 0;
  if (percent <= 0 || percent > mostShare) {
    const message = `share is '${toExcerpt(share)}', not a part above 0% and at most ${mostShare}%`;
    fields.error('invalid-lease', 'share', message, 'write such as 5%');
  }
  const forMs = fields.duration('for') ?? 0;
  if (forMs < shortestLeaseMs || forMs > longestLeaseMs) {
    fields.error('invalid-lease', 'for', 'a lease lasts 50ms to 10s', 'write such as 1s');
  } else if (windowSeconds !== undefined && forMs * leasesOfWindow > windowSeconds * 1000) {
    const message = `the window is shorter than ${leasesOfWindow} leases`;
    fields.error('invalid-lease', 'for', message, `write at most ${windowSeconds * 100}ms`);
  }
  return Object.freeze({ share: percent / 100, forMs });
}

/** Undefined where it is unknown, which has been reported. */
function readAlgorithm(fields: MapReader): Algorithm | undefined {
  const text = readText(fields, 'algorithm');
  if (text === '' || text === undefined) return 'fixed_window';
  const algorithm = algorithms.find((known) => known === text.toLowerCase());
  if (algorithm !== undefined) return algorithm;
  const guess = fields.reporter.nearestWord(withoutOddCharacters(text), algorithms);
  const allowed = `allowed are ${listOf(algorithms)}`;
  const hint = describeRepairedWord(text, guess) ?? didYouMean(guess) ?? allowed;
  fields.error('invalid-algorithm', 'algorithm', `unknown algorithm '${toExcerpt(text)}'`, hint);
  return undefined;
}

/** Warns of keys that have no effect here. */
function refuseIdleKeys(
  fields: MapReader,
  names: readonly (typeof shapeKeys)[number][],
  where: string,
  hint: string,
): void {
  for (const name of names) {
    if (!fields.has(name)) continue;
    fields.error('limit-key-without-effect', name, `${name} has no meaning ${where}`, hint);
  }
}

function reportUnit(
  text: string,
  fields: MapReader,
  descriptor: MapReader,
  findings: KeyFindings,
): void {
  if (text === '' && findings.explainsAbsence('unit')) return;
  const allowed = `allowed are ${listOf(units)}`;
  const guess = fields.reporter.nearestWord(withoutOddCharacters(text), units);
  const repaired = describeRepairedWord(text, guess);
  const hint = repaired ?? (guess ? `${didYouMean(guess)} ${allowed}` : allowed);
  const message = `invalid rate limit unit '${toExcerpt(text)}'`;
  fields.error('invalid-unit', 'unit', message, strayHint('unit', descriptor) ?? hint);
}

function checkCount(
  count: number | undefined,
  fields: MapReader,
  descriptor: MapReader,
  findings: KeyFindings,
): void {
  const name = 'requests_per_unit';
  if (!fields.has(name) && !findings.explainsAbsence(name)) {
    const hint = strayHint(name, descriptor) ?? 'write 0 to block everything';
    fields.error('missing-limit', name, `${name} is missing`, hint);
  }
  if (count === 0) {
    const message = `${name} is 0, so every matching request is rejected`;
    fields.advise('limit-zero', name, message);
  }
}

/** A hint for a key that is missing in rate_limit because it was written beside it. */
function strayHint(name: string, { node, reporter }: MapReader): string | undefined {
  const stray = node.entries.get(name)?.key;
  return stray && `move the ${name} at ${reporter.place(stray.offset)} into rate_limit`;
}

function readReplacement(fields: MapReader, ownName: string): Replacement {
  const findings = checkKeys(fields, 'replaces');
  const name = readText(fields, 'name');
  const hint = 'give it the name of another rule';
  if (name === '' && !findings.explainsAbsence('name')) {
    const message = 'should not have an empty replaces entry';
    fields.error('invalid-replaces', 'name', message, hint);
  }
  if (name && name === ownName) {
    const message = `replaces should not contain name of same descriptor ('${toExcerpt(name)}')`;
    fields.error('invalid-replaces', 'name', message, hint);
  }
  return Object.freeze({
    name: name ?? '',
    position: fields.reporter.position(fields.offsetOf('name')),
  });
}
