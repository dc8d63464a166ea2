// The window units of a limit, and their numbers on the wire.

export const units = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const;
export type Unit = (typeof units)[number];

/** Numbers of RateLimitResponse.RateLimit.Unit, RateLimitConfig's RateLimitUnit and, as the
 * reference reads it, of a request's limit override (behaviour: limit-in-the-request). */
export const unitNumbers: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
  week: 7,
};

/** The unit with this wire number; undefined for 0 (unknown) and for numbers above 7. */
export function unitFromNumber(number: number): Unit | undefined {
  return units.find((unit) => unitNumbers[unit] === number);
}
