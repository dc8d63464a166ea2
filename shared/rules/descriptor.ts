// Reads the descriptors of a rules document, level by level, in the reference's order of checks
// (behaviour: rule-documents).

import { didYouMean, nearestWord } from '../nearest-word.ts';
import { toExcerpt } from '../text-excerpt.ts';
import { checkKeys, joinPath, type KeyFindings, listOf } from './document-keys.ts';
import type { DocumentReporter } from './document-reporter.ts';
import {
  readCount,
  readFlag,
  readList,
  readMap,
  readMetadata,
  readText,
} from './document-values.ts';
import { describeRepairedWord, withoutOddCharacters } from './odd-character.ts';
import {
  type RateLimitBlock,
  type Replacement,
  type RuleDescriptor,
  toCompositeKey,
} from './rule-document.ts';
import { descriptorFlags, toFlags } from './rule-keys.ts';
import { adviseOnText } from './text-advice.ts';
import { units } from './unit.ts';
import { isEmptyList, type TreeMap } from './yaml-node.ts';

/**
 * Reads `map.descriptors`. `parentKey` is the domain and the composite keys above, joined by dots.
 * Undefined when it is not a list, which has been reported.
 */
export function readDescriptors(
  map: TreeMap,
  path: string,
  parentKey: string,
  reporter: DocumentReporter,
): readonly RuleDescriptor[] | undefined {
  const firstOffsets = new Map<string, number>();
  return readList(map, 'descriptors', path, reporter, (item, itemPath) =>
    readDescriptor(item, itemPath, parentKey, firstOffsets, reporter),
  );
}

function readDescriptor(
  map: TreeMap,
  path: string,
  parentKey: string,
  firstOffsets: Map<string, number>,
  reporter: DocumentReporter,
): RuleDescriptor {
  const findings = checkKeys(map, 'descriptor', path, reporter);
  const key = readText(map, 'key', path, reporter);
  const value = readText(map, 'value', path, reporter);
  const flags = toFlags(({ name }) => readFlag(map, name, path, reporter) ?? false);
  const composite = toCompositeKey(key ?? '', value ?? '');
  const fullKey = `${parentKey}.${composite}`;
  const isNamed = key !== undefined && key !== '' && value !== undefined;
  if (key === '' && !findings.explainsAbsence('key')) {
    const offset = map.entries.get('key')?.value.offset ?? map.offset;
    reporter.error(
      'empty-descriptor-key',
      offset,
      joinPath(path, 'key'),
      'descriptor has empty key',
      'give it a key',
    );
  }
  for (const [name, text] of [
    ['key', key],
    ['value', value],
  ] as const) {
    const offset = map.entries.get(name)?.value.offset;
    if (!text || offset === undefined) continue;
    adviseOnText({ name, text, offset, path: joinPath(path, name) }, reporter);
  }
  if (isNamed) checkDuplicate(map, composite, fullKey, path, firstOffsets, reporter);
  const limitMap = readMap(map, 'rate_limit', path, reporter);
  const rateLimit =
    limitMap === undefined || limitMap === 'absent'
      ? undefined
      : readRateLimit(limitMap, map, joinPath(path, 'rate_limit'), reporter);
  if (isNamed && flags.shareThreshold && !value.endsWith('*')) {
    const offset = map.entries.get('share_threshold')?.value.offset ?? map.offset;
    const found = `but found key '${toExcerpt(composite)}'`;
    const message = `share_threshold can only be used with wildcard values (ending in '*'), ${found}`;
    const hint = "remove share_threshold, or give the descriptor a value that ends in '*'";
    reporter.error(
      'invalid-share-threshold',
      offset,
      joinPath(path, 'share_threshold'),
      message,
      hint,
    );
  }
  const metadata = readMetadata(map, path, reporter);
  if (limitMap === 'absent' && !findings.isSuspect) warnWithoutLimit(map, path, reporter);
  return Object.freeze({
    key: key ?? '',
    value: value ?? '',
    rateLimit,
    ...flags,
    metadata: metadata === 'absent' ? undefined : metadata,
    descriptors: readDescriptors(map, path, fullKey, reporter) ?? [],
    position: reporter.position(map.offset),
  });
}

function checkDuplicate(
  map: TreeMap,
  composite: string,
  fullKey: string,
  path: string,
  firstOffsets: Map<string, number>,
  reporter: DocumentReporter,
): void {
  const first = firstOffsets.get(composite);
  if (first === undefined) {
    firstOffsets.set(composite, map.offset);
    return;
  }
  const message = `duplicate descriptor composite key '${toExcerpt(fullKey, 200)}'`;
  const isAlias = first === map.offset;
  const hint = isAlias ? 'an alias repeats it' : `the first one is at ${reporter.place(first)}`;
  reporter.error('duplicate-descriptor', map.offset, path, message, hint);
}

/** What is legal on a descriptor without a limit of its own, and hardly ever meant. */
function warnWithoutLimit(map: TreeMap, path: string, reporter: DocumentReporter): void {
  if (isEmptyList(map, 'descriptors')) {
    const message = 'this descriptor has neither rate_limit nor descriptors: it is never limited';
    const hint = 'if that is meant, write rate_limit: {unlimited: true} to say so';
    reporter.warning('no-limit', map.offset, path, message, hint);
    return;
  }
  for (const { name, needsLimit } of descriptorFlags) {
    if (!needsLimit) continue;
    const entry = map.entries.get(name);
    if (entry?.value.kind !== 'bool' || entry.value.value !== true) continue;
    const message = `${name} has no effect on a descriptor without rate_limit`;
    const hint = 'it is not inherited: write it beside each rate_limit below';
    reporter.warning('flag-without-limit', entry.key.offset, joinPath(path, name), message, hint);
  }
}

function readRateLimit(
  map: TreeMap,
  descriptor: TreeMap,
  path: string,
  reporter: DocumentReporter,
): RateLimitBlock {
  const findings = checkKeys(map, 'rate_limit', path, reporter);
  const unlimited = readFlag(map, 'unlimited', path, reporter);
  const unitText = readText(map, 'unit', path, reporter);
  const unit = units.find((known) => known === unitText?.toLowerCase());
  const count = readCount(map, 'requests_per_unit', path, reporter);
  if (unlimited === true && unit !== undefined) {
    const message = 'should not specify rate limit unit when unlimited';
    const offset = map.entries.get('unit')?.value.offset ?? map.offset;
    reporter.error(
      'unit-when-unlimited',
      offset,
      joinPath(path, 'unit'),
      message,
      'remove either unlimited or unit',
    );
  }
  if (unlimited === false) {
    if (unitText !== undefined && unit === undefined) {
      reportUnit(unitText, map, descriptor, path, findings, reporter);
    }
    checkCount(count, map, descriptor, path, findings, reporter);
  }
  const name = readText(map, 'name', path, reporter);
  return Object.freeze({
    unit: unlimited === true ? undefined : unit,
    requestsPerUnit: typeof count === 'number' ? count : 0,
    unlimited: unlimited ?? false,
    name: name ?? '',
    replaces: readReplaces(map, name ?? '', path, reporter),
  });
}

function reportUnit(
  text: string,
  map: TreeMap,
  descriptor: TreeMap,
  path: string,
  findings: KeyFindings,
  reporter: DocumentReporter,
): void {
  if (text === '' && findings.explainsAbsence('unit')) return;
  const offset = map.entries.get('unit')?.value.offset ?? map.offset;
  const allowed = `allowed are ${listOf(units)}`;
  const guess = nearestWord(withoutOddCharacters(text), units);
  const repaired = describeRepairedWord(text, guess);
  const hint = repaired ?? (guess ? `${didYouMean(guess)} ${allowed}` : allowed);
  const unitPath = joinPath(path, 'unit');
  const message = `invalid rate limit unit '${toExcerpt(text)}'`;
  reporter.error(
    'invalid-unit',
    offset,
    unitPath,
    message,
    strayHint('unit', descriptor, reporter) ?? hint,
  );
}

function checkCount(
  count: number | 'absent' | undefined,
  map: TreeMap,
  descriptor: TreeMap,
  path: string,
  findings: KeyFindings,
  reporter: DocumentReporter,
): void {
  const countPath = joinPath(path, 'requests_per_unit');
  const entry = map.entries.get('requests_per_unit');
  const offset = entry?.value.offset ?? map.offset;
  if (count === 'absent' && !findings.explainsAbsence('requests_per_unit')) {
    const hint = strayHint('requests_per_unit', descriptor, reporter);
    const message = 'requests_per_unit is missing';
    reporter.error(
      'missing-limit',
      offset,
      countPath,
      message,
      hint ?? 'write 0 to block everything',
    );
  }
  if (count === 0) {
    const message = 'requests_per_unit is 0, so every matching request is rejected';
    reporter.warning('limit-zero', offset, countPath, message);
  }
}

/** Says where a key stands that is missing in rate_limit because it was written beside it. */
function strayHint(
  name: string,
  descriptor: TreeMap,
  reporter: DocumentReporter,
): string | undefined {
  const stray = descriptor.entries.get(name)?.key;
  return stray && `move the ${name} at ${reporter.place(stray.offset)} into rate_limit`;
}

function readReplaces(
  map: TreeMap,
  ownName: string,
  path: string,
  reporter: DocumentReporter,
): readonly Replacement[] {
  const replaces = readList(map, 'replaces', path, reporter, (item, itemPath) =>
    readReplacement(item, ownName, itemPath, reporter),
  );
  return replaces ?? [];
}

function readReplacement(
  map: TreeMap,
  ownName: string,
  path: string,
  reporter: DocumentReporter,
): Replacement {
  const findings = checkKeys(map, 'replaces', path, reporter);
  const name = readText(map, 'name', path, reporter);
  const offset = map.entries.get('name')?.value.offset ?? map.offset;
  const hint = 'give it the name of another rule';
  if (name === '' && !findings.explainsAbsence('name')) {
    const message = 'should not have an empty replaces entry';
    reporter.error('invalid-replaces', offset, joinPath(path, 'name'), message, hint);
  }
  if (name && name === ownName) {
    const message = `replaces should not contain name of same descriptor ('${toExcerpt(name)}')`;
    reporter.error('invalid-replaces', offset, joinPath(path, 'name'), message, hint);
  }
  return Object.freeze({ name: name ?? '', position: reporter.position(offset) });
}
