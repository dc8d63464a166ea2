// Reads the limits of a descriptor, `rate_limit` and `rate_limits`, and what authors write in place of a unit or a
// number: `100/minute`, `10 requests per 5 minutes`, `60rpm`, `5 minutes`, `hrs`.
import { toCountText } from '../../count-text.ts';
import { didYouMean } from '../../nearest-word.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import {
  type Algorithm,
  algorithms,
  describeTime,
  type Lease,
  type LimitShape,
  windowSecondsOf,
} from '../limit-shape.ts';
import { describeRepairedWord, withoutOddCharacters } from '../problem/odd-character.ts';
import type { RateLimitBlock, Replacement } from '../rule-document.ts';
import { leastListed, maxCount, mostListed } from '../rule-keys.ts';
import { type Unit, unitFromNumber, units } from '../unit.ts';
import { describeForeignComment } from '../yaml/foreign-syntax.ts';
import { listOf, type MapReader } from '../yaml/map-reader.ts';
import type { TreeMap, TreeNode } from '../yaml/yaml-node.ts';
import type { JoinedLimit } from './joined-items.ts';
import { checkKeys, type KeyFindings, readList, readText } from './rule-fields.ts';

export function readRateLimit(fields: MapReader, descriptor: MapReader): RateLimitBlock {
  const findings = checkKeys(fields, 'rate_limit');
  const unlimited = fields.flag('unlimited');
  const unitText = readText(fields, 'unit');
  const unit = units.find((known) => known === unitText?.toLowerCase());
  const count = fields.count('requests_per_unit', maxCount, 0, describeRate);
  const shape = readShape(fields, unit, findings);
  if (unlimited === true && unit !== undefined) {
    const message = 'should not specify rate limit unit when unlimited';
    fields.error('unit-when-unlimited', 'unit', message, 'remove either unlimited or unit');
  }
  if (unlimited === true) refuseIdleKeys(fields, shapeKeys, 'when unlimited', 'remove it');
  if (unlimited === false) {
    // Each mistake is reported once: a missing key is not if `checkKeys` has reported its probable misspelling, or if
    // the other field has a rate such as 100/minute, which is reported there and contains both values.
    const isRate = (name: string) => toRate(sourceOf(fields.node, name)) !== undefined;
    const isAbsenceReported = (name: string) =>
      findings.explainsAbsence(name) ||
      findings.explainsAbsence('unlimited') ||
      isRate(name === 'unit' ? 'requests_per_unit' : 'unit');
    if (isBare(fields, descriptor) && !isAbsenceReported('unit')) {
      const hint = 'write a mapping such as {unit: minute, requests_per_unit: 3}';
      fields.error('invalid-unit', 'unit', "invalid rate limit unit ''", hint);
    } else {
      // `readText` returns undefined for what it has reported.
      const isUnitReported =
        unitText === undefined || (unitText === '' && isAbsenceReported('unit'));
      if (!isUnitReported && unit === undefined) reportUnit(unitText, fields, descriptor);
      checkCount(count, fields, descriptor, isAbsenceReported('requests_per_unit'));
    }
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

/** Whether it is `rate_limit: {}`, without a key beside it that belongs inside: one mistake. */
function isBare({ node }: MapReader, descriptor: MapReader): boolean {
  const isBeside = ['unit', 'requests_per_unit'].some((name) => descriptor.has(name));
  return node.entries.size === 0 && !isBeside;
}

/** The limits in `rate_limit` and `rate_limits`, as they are written. */
export function listJoinedLimits(descriptor: TreeMap): readonly JoinedLimit[] {
  const nodes = ['rate_limit', 'rate_limits'].flatMap((name) => {
    const node = descriptor.entries.get(name)?.value;
    return node?.kind === 'list' ? node.items : (node ?? []);
  });
  return nodes
    .filter((node) => node.kind === 'map')
    .map((limit) => ({ text: toFlowMap(limit), window: toWindow(limit) }));
}

function toWindow(limit: TreeMap): string | undefined {
  if (!limit.entries.has('unit') || limit.entries.has('unlimited')) return undefined;
  return ['unit', 'unit_multiplier', 'algorithm'].map((name) => sourceOf(limit, name)).join(' ');
}

function sourceOf({ entries }: TreeMap, name: string): string {
  const node = entries.get(name)?.value;
  return node !== undefined && 'source' in node ? node.source.toLowerCase() : '';
}

/** The mapping as it is written in one line; `...` stands for a value that is a mapping or a list. */
function toFlowMap({ entries }: TreeMap): string {
  const shown = [...entries].slice(0, mostShown).map(([name, { value }]) => {
    const source = 'source' in value ? toExcerpt(value.source) : '...';
    return `${toExcerpt(name)}: ${source}`;
  });
  return `{${shown.join(', ')}${entries.size > mostShown ? ', ...' : ''}}`;
}

const mostShown = 6;

/** The hint for a limit that is not a mapping: a mapping with the numbers of a text such as `10/minute`. */
export function describeLimit(node: TreeNode): string {
  const listed = node.kind === 'list' ? node.items.filter((item) => item.kind === 'map') : [];
  const [only] = listed;
  if (listed.length > 1) return "for several limits write 'rate_limits'";
  if (only !== undefined) return `write it as a mapping: ${toFlowMap(only)}`;
  const rate = toRate('source' in node ? node.source : '') ?? sampleRate;
  return `write it as a mapping: {${toFields(rate)}}`;
}

function describeLimitList(node: TreeNode): string | undefined {
  return node.kind === 'map' ? "for one limit write 'rate_limit'" : undefined;
}

/** The limits of `rate_limits`; undefined when there is no list. */
export function readLimitList(descriptor: MapReader): readonly RateLimitBlock[] | undefined {
  if (!descriptor.has('rate_limits')) return undefined;
  const list = descriptor.items('rate_limits', describeLimitList);
  if (descriptor.find('rate_limits')?.kind !== 'list') return [];
  const items = descriptor.maps('rate_limits');
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
  findings: KeyFindings,
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
  } else if (algorithm === 'fixed_window' && !findings.explainsAbsence('algorithm')) {
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
  const findings = checkKeys(fields, 'lease');
  const share = readText(fields, 'share');
  const percent = /^\d{1,2}(?:\.\d{1,6})?%$/.test(share ?? '') ? Number.parseFloat(share ?? '') : 0;
  const isShareReported =
    share === undefined || (share === '' && findings.explainsAbsence('share'));
  if (!isShareReported && (percent <= 0 || percent > mostShare)) {
    const message = `share is '${toExcerpt(share)}', not a part above 0% and at most ${mostShare}%`;
    fields.error('invalid-lease', 'share', message, 'write a share such as 5%');
  }
  const forMs = fields.duration('for');
  if (forMs === undefined) {
    if (!fields.has('for') && !findings.explainsAbsence('for')) refuseTime();
  } else if (forMs < shortestLeaseMs || forMs > longestLeaseMs) {
    refuseTime();
  } else if (windowSeconds !== undefined && forMs * leasesOfWindow > windowSeconds * 1000) {
    const message = `the window is shorter than ${leasesOfWindow} leases`;
    fields.error('invalid-lease', 'for', message, `write at most ${windowSeconds * 100}ms`);
  }
  return Object.freeze({ share: percent / 100, forMs: forMs ?? 0 });

  function refuseTime(): void {
    fields?.error('invalid-lease', 'for', 'a lease lasts 50ms to 10s', 'write a time such as 1s');
  }
}

/** The names without their separators. */
const otherAlgorithmNames: ReadonlyMap<string, Algorithm> = new Map([
  ['leakybucket', 'token_bucket'],
  ['gcra', 'token_bucket'],
  ['genericcellrate', 'token_bucket'],
  ['rollingwindow', 'sliding_window'],
  ['slidinglog', 'sliding_window'],
  ['slidingwindowlog', 'sliding_window'],
  ['slidingwindowcounter', 'sliding_window'],
]);

/** Undefined if it is unknown, which has been reported. */
function readAlgorithm(fields: MapReader): Algorithm | undefined {
  const text = readText(fields, 'algorithm');
  if (text === '' || text === undefined) return 'fixed_window';
  const algorithm = algorithms.find((known) => known === text.toLowerCase());
  if (algorithm !== undefined) return algorithm;
  const guess = fields.reporter.nearestWord(withoutOddCharacters(text), algorithms);
  const allowed = `allowed are ${listOf(algorithms)}`;
  const other = otherAlgorithmNames.get(text.toLowerCase().replaceAll(/[^a-z]/g, ''));
  const named = other && `write '${other}', its name here`;
  const hint = named ?? describeRepairedWord(text, guess) ?? didYouMean(guess) ?? allowed;
  fields.error('invalid-algorithm', 'algorithm', `unknown algorithm '${toExcerpt(text)}'`, hint);
  return undefined;
}

/** Reports keys without effect here as errors. */
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

function reportUnit(text: string, fields: MapReader, descriptor: MapReader): void {
  const allowed = `allowed are ${listOf(units)}`;
  const plain = withoutOddCharacters(text);
  const guess = toUnit(plain) ?? fields.reporter.nearestWord(plain, units);
  const repaired = describeRepairedWord(text, guess);
  const near = guess ? `${didYouMean(guess)} ${allowed}` : allowed;
  const hint = describeForeignComment(text) ?? describeUnit(text) ?? repaired ?? near;
  const message = `invalid rate limit unit '${toExcerpt(text)}'`;
  fields.error('invalid-unit', 'unit', message, strayHint('unit', descriptor) ?? hint);
}

function checkCount(
  count: number | undefined,
  fields: MapReader,
  descriptor: MapReader,
  isAbsenceReported: boolean,
): void {
  const name = 'requests_per_unit';
  if (!fields.has(name) && !isAbsenceReported) {
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
  return stray && `move the ${name} at ${reporter.positionText(stray.offset)} into rate_limit`;
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

interface Rate {
  readonly count: number;
  readonly unit: Unit;
  readonly unitMultiplier: number;
}

const sampleRate: Rate = { count: 3, unit: 'minute', unitMultiplier: 1 };

const longRate =
  /^(\d[\d_,]{0,12}) ?(?:[a-z]{1,9} ?)?(?:\/|\b(?:per|an?|each|every) ) ?(\d{0,9}) ?([a-z]{1,9})$/i;
const shortRate = /^(\d[\d_,]{0,12}) ?[a-z]?p([smhd])$/i;

/** The rate that a text such as `100/minute` expresses. */
function toRate(text: string): Rate | undefined {
  const [, shortCount, letter] = shortRate.exec(text) ?? [];
  const [, count = shortCount, multiplier, word = letter] = longRate.exec(text) ?? [];
  const unit = toUnit(word ?? '');
  if (unit === undefined || count === undefined) return undefined;
  const number = Number(count.replaceAll(/\D/g, ''));
  return { count: number, unit, unitMultiplier: Math.max(1, Number(multiplier ?? 1)) };
}

/** The fields of a limit as they are written in one line. */
function toFields({ count, unit, unitMultiplier }: Rate): string {
  const times = unitMultiplier === 1 ? '' : `unit_multiplier: ${unitMultiplier}, `;
  return `unit: ${unit}, ${times}requests_per_unit: ${count}`;
}

/** The hint for a rate in place of a unit or a number. */
function describeRate(text: string): string | undefined {
  const rate = toRate(text);
  return rate && `write unit and number apart: ${toFields(rate)}`;
}

const unitAbbreviations: ReadonlyMap<string, Unit> = new Map([
  ['s', 'second'],
  ['sec', 'second'],
  ['m', 'minute'],
  ['min', 'minute'],
  ['h', 'hour'],
  ['hr', 'hour'],
  ['d', 'day'],
  ['daily', 'day'],
  ['w', 'week'],
  ['wk', 'week'],
  ['mo', 'month'],
  ['y', 'year'],
  ['yr', 'year'],
]);

/** The unit that a word such as `hr` or `Minutes` names. */
function toUnit(word: string): Unit | undefined {
  const plain = word.toLowerCase().replace(/(?<=..)s$/, '');
  return units.find((known) => known === plain) ?? unitAbbreviations.get(plain);
}

/** The hint for a rate or a number of units, such as `5 minutes`, or a unit's number in messages. */
function describeUnit(text: string): string | undefined {
  const rate = describeRate(text);
  if (rate !== undefined) return rate;
  const numbered = /^\d$/.test(text) ? unitFromNumber(Number(text)) : undefined;
  if (numbered !== undefined) return `write '${numbered}', whose number in messages is ${text}`;
  const [, single = ''] = /^(?:per |an? |each |every |\/ ?)([a-z]{1,9})$/i.exec(text) ?? [];
  const [, count = '1', word = single] = /^(\d{1,9}) ?([a-z]{1,9})$/i.exec(text) ?? [];
  const unit = toUnit(word);
  if (unit === undefined) return undefined;
  return count === '1' ? `write '${unit}'` : `write unit: ${unit} and unit_multiplier: ${count}`;
}
