// The keys of one mapping of a rules document: what to say of those that do not exist, or that have no effect
// there.

import { didYouMean, nearestWord } from '../nearest-word.ts';
import { toExcerpt } from '../text-excerpt.ts';
import type { DocumentReporter } from './document-reporter.ts';
import { describeRepairedWord, withoutOddCharacters } from './odd-character.ts';
import { keysAt, type Place } from './rule-keys.ts';
import type { TreeMap, TreeNode } from './yaml-node.ts';

const keysOfPlace: Readonly<Record<Place, readonly string[]>> = {
  document: keysAt('document'),
  descriptor: keysAt('descriptor'),
  rate_limit: keysAt('rate_limit'),
  replaces: keysAt('replaces'),
};
const allKeys: ReadonlySet<string> = new Set(Object.values(keysOfPlace).flat());

/** What was found among the keys of one mapping. */
export interface KeyFindings {
  /** True when the absence of `key` may be due to another problem that has been reported. */
  explainsAbsence(key: string): boolean;
  /** True when a reported problem may explain why the mapping says nothing of use. */
  readonly isSuspect: boolean;
}

/**
 * Reports unknown keys, and keys that are known but have no effect in this place. The reference
 * knows one flat set of keys and ignores those in a wrong place, so they are only warnings.
 */
export function checkKeys(
  map: TreeMap,
  place: Place,
  path: string,
  reporter: DocumentReporter,
): KeyFindings {
  const guesses = new Set<string>();
  const misplaced: string[] = [];
  let hasUnexplained = map.isIncomplete === true;
  for (const [name, { key, value }] of map.entries) {
    const keyPath = joinPath(path, name);
    if (key.kind !== 'text' || !allKeys.has(name)) {
      const guess = reportUnknownKey(map, name, keysOfPlace[place], path, reporter);
      if (guess === undefined) hasUnexplained = true;
      else guesses.add(guess);
    } else if (!keysOfPlace[place].includes(name)) {
      if (!isMissedInside(map, name, place)) misplaced.push(name);
      if (name !== 'metadata') checkStrayValue(value, keyPath, reporter);
    }
  }
  reportMisplaced(map, misplaced, place, path, reporter);
  return {
    explainsAbsence: (key) => hasUnexplained || guesses.has(key),
    isSuspect: hasUnexplained || guesses.size > 0 || misplaced.length > 0,
  };
}

/** A required key of rate_limit that stands beside it is told where it is missing. */
function isMissedInside(map: TreeMap, name: string, place: Place): boolean {
  const limit = map.entries.get('rate_limit')?.value;
  return (
    place === 'descriptor' &&
    (name === 'unit' || name === 'requests_per_unit') &&
    limit?.kind === 'map' &&
    !limit.entries.has(name) &&
    !limit.entries.has('unlimited')
  );
}

export function joinPath(path: string, key: string): string {
  return path === '' ? toExcerpt(key) : `${path}.${toExcerpt(key)}`;
}

/** Returns the known key that is meant, if one is near. */
function reportUnknownKey(
  map: TreeMap,
  name: string,
  candidates: readonly string[],
  path: string,
  reporter: DocumentReporter,
): string | undefined {
  const key = map.entries.get(name)?.key;
  const shown = toExcerpt(name);
  if (key?.kind !== 'text') {
    const message = `key is not of type string: ${shown === '' ? "''" : shown}`;
    reporter.error(
      'unknown-key',
      key?.offset,
      joinPath(path, name),
      message,
      `keys here: ${listOf(candidates)}`,
    );
    return undefined;
  }
  const [, beforeColon, afterColon] = /^([^:]+):(.+)$/s.exec(name) ?? [];
  const guess = nearestWord(withoutOddCharacters(beforeColon ?? name), candidates);
  const hint =
    describeRepairedWord(name, guess) ??
    (guess === undefined
      ? `keys here: ${listOf(candidates)}`
      : afterColon === undefined
        ? didYouMean(guess)
        : `write a space after the colon: '${guess}: ${toExcerpt(afterColon)}'`);
  reporter.error('unknown-key', key.offset, joinPath(path, name), `unknown key '${shown}'`, hint);
  return guess;
}

/** Values that are never read are still held to the key set, as in the reference. */
function checkStrayValue(value: TreeNode, path: string, reporter: DocumentReporter): void {
  if (value.kind === 'float') reportFloat(value.source, value.offset, path, reporter);
  else if (value.kind === 'list') {
    value.items.forEach((item, index) => {
      const itemPath = `${path}[${index}]`;
      if (item.kind === 'map') checkStrayValue(item, itemPath, reporter);
      else reportListItem(item, path.endsWith('replaces') ? 'name' : 'key', itemPath, reporter);
    });
  } else if (value.kind === 'map') {
    for (const [name, entry] of value.entries) {
      if (entry.key.kind !== 'text' || !allKeys.has(name)) {
        reportUnknownKey(value, name, [...allKeys], path, reporter);
      } else if (name !== 'metadata') {
        checkStrayValue(entry.value, joinPath(path, name), reporter);
      }
    }
  }
}

/** One warning for all keys that belong to the same other place: they are one mistake. */
function reportMisplaced(
  map: TreeMap,
  names: readonly string[],
  place: Place,
  path: string,
  reporter: DocumentReporter,
): void {
  const byHome = Map.groupBy(names, (name) => describeHome(name, place));
  for (const [home, group] of byHome) {
    const [first = ''] = group;
    const verb = group.length === 1 ? 'has' : 'have';
    const message = `${listOf(group.map((name) => `'${name}'`))} ${verb} no effect here`;
    const it = group.length === 1 ? 'it' : 'them';
    const offset = map.entries.get(first)?.key.offset;
    reporter.warning('misplaced-key', offset, joinPath(path, first), message, `move ${it} ${home}`);
  }
}

function describeHome(name: string, place: Place): string {
  if (name === 'domain') return 'to the top of the document';
  if (keysOfPlace.rate_limit.includes(name)) {
    return place === 'document' ? 'into the rate_limit of a descriptor' : 'into rate_limit';
  }
  return place === 'document' ? 'into an item of descriptors' : 'out, beside the key';
}

/** `firstKey` is what an item of this list begins with. */
export function reportListItem(
  item: TreeNode,
  firstKey: string,
  path: string,
  reporter: DocumentReporter,
): void {
  if (item.kind === 'gap') return;
  const source = 'source' in item ? item.source : '';
  const shown = 'source' in item ? toExcerpt(source) || 'null' : 'a list';
  const message = `list of type other than map: ${shown}`;
  const [, key, value] = /^(\w+):\s*(\S.*)$/s.exec(source) ?? [];
  const hint =
    key !== undefined && value !== undefined
      ? `write a space after the colon: '- ${key}: ${toExcerpt(value)}'`
      : `write each item as a mapping, such as '- ${firstKey}: ${toExcerpt(source) || 'name'}'`;
  reporter.error('list-item-type', item.offset, path, message, hint);
}

export function reportFloat(
  source: string,
  offset: number,
  path: string,
  reporter: DocumentReporter,
): void {
  const shown = toExcerpt(source);
  const message = `${shown} is neither text nor a whole number`;
  reporter.error('value-type', offset, path, message, `for text, write it in quotes: '${shown}'`);
}

export function listOf(words: readonly string[]): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
