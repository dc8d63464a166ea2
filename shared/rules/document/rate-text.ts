// What authors write in place of a unit or a number: `100/minute`, `10 requests per 5 minutes`, `60rpm`, `5 minutes`, `hrs`.
import { type Unit, unitFromNumber, units } from '../unit.ts';

interface Rate {
  readonly count: number;
  readonly unit: Unit;
  readonly unitMultiplier: number;
}

export const sampleRate: Rate = { count: 3, unit: 'minute', unitMultiplier: 1 };

const longRate =
  /^(\d[\d_,]{0,12}) ?(?:[a-z]{1,9} ?)?(?:\/|\b(?:per|an?|each|every) ) ?(\d{0,9}) ?([a-z]{1,9})$/i;
const shortRate = /^(\d[\d_,]{0,12}) ?[a-z]?p([smhd])$/i;

/** The rate that a text such as `100/minute` expresses. */
export function toRate(text: string): Rate | undefined {
  const [, shortCount, letter] = shortRate.exec(text) ?? [];
  const [, count = shortCount, multiplier, word = letter] = longRate.exec(text) ?? [];
  const unit = toUnit(word ?? '');
  if (unit === undefined || count === undefined) return undefined;
  const number = Number(count.replaceAll(/\D/g, ''));
  return { count: number, unit, unitMultiplier: Math.max(1, Number(multiplier ?? 1)) };
}

/** The fields of a limit as they are written in one line. */
export function toFields({ count, unit, unitMultiplier }: Rate): string {
  const times = unitMultiplier === 1 ? '' : `unit_multiplier: ${unitMultiplier}, `;
  return `unit: ${unit}, ${times}requests_per_unit: ${count}`;
}

/** The hint for a rate in place of a unit or a number. */
export function describeRate(text: string): string | undefined {
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
export function toUnit(word: string): Unit | undefined {
  const plain = word.toLowerCase().replace(/(?<=..)s$/, '');
  return units.find((known) => known === plain) ?? unitAbbreviations.get(plain);
}

/** The hint for a rate or a number of units, such as `5 minutes`, or a unit's number in messages. */
export function describeUnit(text: string): string | undefined {
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
